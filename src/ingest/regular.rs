//! Opens files only if reading them ends. A named pipe would block, and a device never ends.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Opens a file. The process's own pipes (`/dev/stdin`, and what a shell makes of `<(command)`) are open already.
pub fn open(path: &Path) -> io::Result<File> {
    refuse(path, &std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Another process may have replaced the file since.
    refuse(path, &file.metadata()?)?;
    Ok(file)
}

/// The whole text of a file, or of standard input for `-`. It fails if the text has more than `most` bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let from: Box<dyn Read> =
        if path.as_os_str() == "-" { Box::new(io::stdin().lock()) } else { Box::new(open(path)?) };
    let mut text = String::new();
    let read = from.take(most + 1).read_to_string(&mut text)?;
    if read as u64 > most {
        return Err(io::Error::other(format!("it has more than {} MiB", most >> 20)));
    }
    Ok(text)
}

/// The entries of a folder without links, in a stable order. A link may lead back to the folder, or out of it. The
/// second value is the number of links.
pub fn listed(folder: &Path) -> io::Result<(Vec<PathBuf>, usize)> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries.collect::<io::Result<Vec<_>>>()?;
    let all = entries.len();
    entries.retain(|entry| !entry.is_symlink());
    entries.sort();
    let links = all - entries.len();
    Ok((entries, links))
}

/// The remark about skipped links.
pub fn not_followed(links: usize) -> String {
    let what =
        if links == 1 { "1 link in this folder is".to_owned() } else { format!("{links} links in this folder are") };
    format!("{what} not followed; name the file or folder behind a link to read it")
}

fn refuse(path: &Path, metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() || metadata.is_dir() || is_own(path) {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "this is {}, not a regular file; give its text on standard input instead, as `-f -` or `--logs -`",
        kind(metadata)
    )))
}

/// Whether it is a file descriptor of this process.
fn is_own(path: &Path) -> bool {
    const OPEN: [&str; 3] = ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];
    path == Path::new("/dev/stdin")
        || path.parent().is_some_and(|folder| OPEN.iter().any(|open| folder == Path::new(open)))
}

#[cfg(unix)]
fn kind(metadata: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
const fn kind(_: &Metadata) -> &'static str {
    "a device"
}
