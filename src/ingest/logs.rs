//! Logs: files, directories, archives of them, standard input. nodewhy detects what each holds from its content.
//!
//! Nothing is unpacked to disk, and no more than a line is held at a time: a bundle may be larger than the memory, or
//! made to fill it.

use super::regular;
use chrono::{DateTime, Utc};
use engine::cluster_state::ClusterState;
use engine::objects::Pod;
use engine::upstream::network_agents::servers;
use engine::upstream::startup_taint;
use flate2::read::MultiGzDecoder;
use logs::journey::Journey;
use logs::{FileKind, FileLimits, LogReader};
use std::cell::Cell;
use std::io::{self, Cursor, Read};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

/// Limits for untrusted archives. A bundle of the EKS log collector has some hundred files, and up to 2 GB.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub entries: usize,
    /// Bytes of all files and of everything unpacked from them, at any depth, skipped files included.
    pub bytes: u64,
    /// Depth of archives in archives.
    pub depth: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { entries: 100_000, bytes: 16 << 30, depth: 3 }
    }
}

/// The result of reading logs.
#[derive(Debug, Default)]
pub struct Logs {
    pub journeys: Vec<Journey>,
    /// Files that could not be read, with the reason. The others were read.
    pub complaints: Vec<String>,
    /// Files that were skipped on purpose.
    pub notes: Vec<String>,
    pub files: usize,
    pub lines: u64,
}

/// Reads logs. A file may be named after one of the cluster's pods.
pub fn load(paths: &[PathBuf], cluster: &ClusterState, bounds: Bounds) -> Logs {
    let is_server = |pod: &Pod| servers().any(|deployment| pod.is_of_deployment(deployment));
    let is_of_machine =
        |pod: &Pod| pod.daemon_set().is_some() || startup_taint::package(pod).is_some() || is_server(pod);
    let pods = cluster.pods().map(|pod| (pod.metadata.name.to_string(), is_of_machine(pod))).collect();
    let mut loader = Loader {
        reader: LogReader::new(FileLimits::default()).of_pods(pods),
        logs: Logs::default(),
        bounds,
        known: 0,
        entries: 0,
        budget: Rc::new(Budget { left: Cell::new(bounds.bytes), is_spent: Cell::new(false) }),
    };
    for path in paths {
        if loader.budget.is_spent.get() {
            break;
        }
        let known = loader.known;
        loader.path(path, 0);
        if loader.known == known {
            let path = path.display();
            loader.complain(
                &path,
                "nodewhy recognizes no line of this file. It may not be the log of a node or of a component",
            );
        }
    }
    let Loader { reader, mut logs, .. } = loader;
    logs.journeys = reader.journeys();
    logs
}

struct Loader {
    reader: LogReader,
    logs: Logs,
    bounds: Bounds,
    known: u64,
    entries: usize,
    budget: Rc<Budget>,
}

impl Loader {
    fn complain(&mut self, name: &dyn std::fmt::Display, what: &str) {
        /// Maximum complaints. More would not help if the folder holds something else.
        const MOST: usize = 50;
        if self.logs.complaints.len() < MOST {
            self.logs.complaints.push(format!("{name}: {what}"));
        }
    }

    fn path(&mut self, path: &Path, depth: usize) {
        let name = path.display().to_string();
        if path.as_os_str() == "-" {
            return self.stream(
                "standard input",
                Box::new(Metered { from: io::stdin().lock(), budget: Rc::clone(&self.budget) }),
                Some(Utc::now()),
                0,
            );
        }
        if path.is_dir() {
            const DEEPEST: usize = 32;
            match regular::listed(path) {
                Ok(_) if depth > DEEPEST => self.complain(&name, "more than 32 directories deep"),
                Ok((entries, links)) => {
                    // Only what is named may be a link: what it points to is asked for.
                    if links > 0 {
                        self.logs.notes.push(format!("{name}: {}", regular::not_followed(links)));
                    }
                    for entry in &entries {
                        self.path(entry, depth + 1);
                    }
                }
                Err(error) => self.complain(&name, &format!("cannot be listed: {error}")),
            }
            return;
        }
        // A pipe or a socket in a folder was not asked for.
        if depth > 0 && std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return;
        }
        match regular::open(path) {
            Ok(file) => {
                let written = file.metadata().ok().and_then(|metadata| metadata.modified().ok()).map(DateTime::from);
                self.stream(&name, Box::new(Metered { from: file, budget: Rc::clone(&self.budget) }), written, 0);
            }
            Err(error) => self.complain(&name, &format!("cannot be read: {error}")),
        }
    }

    /// A file, an archive, or an archive in one.
    fn stream(&mut self, name: &str, mut from: Box<dyn Read + '_>, written: Option<DateTime<Utc>>, depth: usize) {
        /// Enough to see what it is: a tar's magic stands at 257.
        const HEAD: u64 = 512;
        let mut head = Vec::new();
        if let Err(error) = from.by_ref().take(HEAD).read_to_end(&mut head) {
            return self.complain(&name, &format!("cannot be read: {error}"));
        }
        let is_gzip = head.starts_with(&[0x1f, 0x8b]);
        let is_tar = head.get(257..262) == Some(b"ustar");
        let other =
            [(&b"PK\x03\x04"[..], "zip"), (b"\xfd7zXZ", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")];
        let kind = other.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, kind)| *kind);
        let whole = Cursor::new(head).chain(from);
        if (is_gzip || is_tar) && depth >= self.bounds.depth {
            return self.complain(&name, "an archive in an archive in an archive is not opened");
        }
        if is_gzip {
            // What is passed over is unpacked as well.
            let unpacked = Metered { from: MultiGzDecoder::new(whole), budget: Rc::clone(&self.budget) };
            self.stream(name, Box::new(unpacked), written, depth + 1);
        } else if is_tar {
            self.archive(name, whole, depth);
        } else if let Some(kind) = kind {
            self.complain(&name, &format!("this is {kind}, which is not read: unpack it first"));
        } else {
            self.file(name, whole, written);
        }
    }

    fn archive(&mut self, name: &str, from: impl Read, depth: usize) {
        let mut archive = tar::Archive::new(from);
        // Raw: the crate would hold a long name of any length in memory.
        let entries = match archive.entries() {
            Ok(entries) => entries.raw(true),
            Err(error) => return self.complain(&name, &format!("cannot be read as a tar archive: {error}")),
        };
        let mut long_name = None;
        for entry in entries {
            let mut entry = match entry {
                Ok(entry) => entry,
                Err(_) if self.budget.is_spent.get() => return self.spent(name),
                Err(error) => return self.complain(&name, &format!("is cut off: {error}")),
            };
            self.entries += 1;
            if self.entries > self.bounds.entries {
                return self.complain(&name, &format!("more than {} files; the rest is not read", self.bounds.entries));
            }
            let kind = entry.header().entry_type();
            if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
                long_name = next_name(&mut entry, kind.is_pax_local_extensions());
                continue;
            }
            let path = long_name.take().map_or_else(|| entry.path().map(Into::into).unwrap_or_default(), PathBuf::from);
            // Links point wherever somebody wanted, devices are none.
            if !kind.is_file() {
                continue;
            }
            let written =
                entry.header().mtime().ok().and_then(|time| i64::try_from(time).ok()).filter(|time| *time > 0);
            let written = written.and_then(|time| DateTime::from_timestamp(time, 0));
            self.stream(&format!("{name}/{}", plain_path(&path)), Box::new(entry), written, depth);
            if self.budget.is_spent.get() {
                return self.spent(name);
            }
        }
    }

    fn file(&mut self, name: &str, mut from: impl Read, written: Option<DateTime<Utc>>) {
        match self.reader.file(name, &mut from, written) {
            Ok(FileKind::Text { lines, known }) => {
                self.logs.files += 1;
                self.logs.lines += lines;
                self.known += known;
            }
            Ok(FileKind::Binary) => {}
            Err(error) => self.complain(&name, &format!("cannot be read to its end: {error}")),
        }
        if self.budget.is_spent.get() {
            self.spent(name);
        }
    }

    /// Says once that there is more than is read.
    fn spent(&mut self, name: &str) {
        let said = format!("more than {} MiB of logs; the rest is not read", self.bounds.bytes >> 20);
        if !self.logs.complaints.iter().any(|complaint| complaint.ends_with(&said)) {
            self.complain(&name, &said);
        }
    }
}

/// The name of the entry that follows, as GNU tar and POSIX tar write one that is long.
fn next_name(entry: &mut impl Read, is_pax: bool) -> Option<String> {
    /// Linux: PATH_MAX, and what a pax header says beside it.
    const LONGEST: u64 = 8 << 10;
    let mut text = Vec::new();
    entry.take(LONGEST).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let name =
        if is_pax { text.lines().find_map(|line| line.split_once(" path=")).map(|(_, path)| path)? } else { &*text };
    Some(name.trim_end_matches('\0').to_owned())
}

/// A path as it may be shown: the names in it, and nothing that leads elsewhere.
fn plain_path(path: &Path) -> String {
    let names =
        path.components().filter_map(|part| if let Component::Normal(name) = part { name.to_str() } else { None });
    let shown = names.collect::<Vec<_>>().join("/");
    shown.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect()
}

/// How much may still be read, of all files and of all that is unpacked of them.
struct Budget {
    left: Cell<u64>,
    is_spent: Cell<bool>,
}

/// A file, or what a decoder makes of one, that ends where the budget does.
struct Metered<R> {
    from: R,
    budget: Rc<Budget>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.budget.left.get()).unwrap_or(usize::MAX);
        if left == 0 {
            // Whether it ends here too, one byte tells.
            let is_more = !into.is_empty() && self.from.read(&mut [0])? > 0;
            self.budget.is_spent.set(self.budget.is_spent.get() || is_more);
            return Ok(0);
        }
        let most = into.len().min(left);
        let read = self.from.read(&mut into[..most])?;
        self.budget.left.set(self.budget.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}
