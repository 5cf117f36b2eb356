//! Whether what nodewhy takes from upstream still stands in a newer version of a module, and if not, where it went.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::lines::{SaidLine, place, stands_in, unquoted};
use super::table::{Fault, Table, one_line};

/// A string that is not where it was.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// MODULE@VERSION of the newer version.
    pub module: String,
    pub file: String,
    /// The string, and what it is to nodewhy.
    pub what: String,
    pub now: Now,
}

/// What became of a string.
#[derive(Debug, PartialEq, Eq)]
pub enum Now {
    /// Other files of the module have it. A file of the old name comes first.
    Moved(Vec<String>),
    /// No file of the module has it, tests aside.
    Vanished,
    /// It is there, and the table's `since` or `until` says that it is not.
    Unexpected,
}

/// A string that its file no longer has.
struct Missing {
    file: String,
    what: String,
    sought: Sought,
    found_in: BTreeSet<String>,
}

enum Sought {
    /// As the table writes it, in one line.
    Written(String),
    /// A line that a program prints.
    Said(String),
}

impl Sought {
    fn is_in(&self, file: &str, one_line: &str, unquoted: &str) -> bool {
        match self {
            Self::Written(text) => one_line.contains(text),
            Self::Said(says) => stands_in(says, file, unquoted),
        }
    }
}

/// A module of one version, unpacked.
pub struct Unpacked<'m> {
    pub module: &'m str,
    pub version: String,
    pub folder: PathBuf,
}

impl Unpacked<'_> {
    fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }
}

/// What differs in `newer` from what the table and the rows of log lines say, and how many strings were looked up. A
/// row of log lines has no end: it counts if `pinned`, the newest version that the tests look at, still has it.
pub fn differences(
    table: &Table,
    lines: &[SaidLine],
    pinned: &Unpacked<'_>,
    newer: &Unpacked<'_>,
) -> (usize, Vec<Difference>) {
    let (mut looked_up, mut missing, mut differences) = (0, Vec::new(), Vec::new());
    let module = format!("{}@{}", newer.module, newer.version);
    for source in table.source.iter().filter(|source| source.module == newer.module) {
        let text = newer.read(&source.file).map(|text| one_line(&text));
        for (kind, entry) in
            source.entries.iter().flat_map(|(kind, entries)| entries.iter().map(|entry| (*kind, entry)))
        {
            looked_up += 1;
            let what = format!("{kind:?} {:?}", entry.text());
            let file = source.file.clone();
            match source.fault(kind, entry, &newer.version, text.as_deref()) {
                None => {}
                Some(Fault::Unexpected) => {
                    let now = Now::Unexpected;
                    differences.push(Difference { module: module.clone(), file, what, now });
                }
                Some(Fault::FileGone | Fault::Missing) => {
                    let sought = Sought::Written(source.written(kind, entry));
                    missing.push(Missing { file, what, sought, found_in: BTreeSet::new() });
                }
            }
        }
    }
    let pins: BTreeSet<&str> = table.pins.values().flatten().map(String::as_str).collect();
    for line in lines {
        let Some((_, version, file)) = place(&line.source).filter(|(module, ..)| module == newer.module) else {
            continue;
        };
        let stands = |text: Option<String>| text.is_some_and(|text| stands_in(&line.says, file, &unquoted(&text)));
        if !pins.contains(version) || !stands(pinned.read(file)) {
            continue;
        }
        looked_up += 1;
        if !stands(newer.read(file)) {
            let (what, sought) = (format!("log line {:?}", line.says), Sought::Said(line.says.clone()));
            missing.push(Missing { file: file.to_owned(), what, sought, found_in: BTreeSet::new() });
        }
    }
    if !missing.is_empty() {
        let mut paths = Vec::new();
        source_files(&newer.folder, &mut paths);
        let files = paths.iter().filter_map(|path| {
            let name = path.strip_prefix(&newer.folder).ok()?.display().to_string();
            Some((name, fs::read_to_string(path).ok()?))
        });
        find(&mut missing, files);
    }
    differences.extend(missing.into_iter().map(|missing| missing.told(&module)));
    (looked_up, differences)
}

/// Every file below the folder, tests and their data aside: what stands only there is no behavior.
fn source_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if !matches!(name, "testdata" | "test" | "tests") {
                source_files(&path, found);
            }
        } else if !name.ends_with("_test.go") {
            found.push(path);
        }
    }
}

/// Notes the files that have what is missing. A file of another type has it for another reason: documents name reasons,
/// too.
fn find(missing: &mut [Missing], files: impl Iterator<Item = (String, String)>) {
    let extension = |file: &str| file.rsplit_once('.').map(|(_, extension)| extension.to_owned());
    for (name, text) in files {
        let (one_line, unquoted) = (one_line(&text), unquoted(&text));
        for missing in missing.iter_mut().filter(|missing| extension(&missing.file) == extension(&name)) {
            if missing.file != name && missing.sought.is_in(&name, &one_line, &unquoted) {
                missing.found_in.insert(name.clone());
            }
        }
    }
}

impl Missing {
    fn told(self, module: &str) -> Difference {
        let name = |file: &str| file.rsplit('/').next().unwrap_or_default().to_owned();
        let mut places: Vec<String> = self.found_in.into_iter().collect();
        places.sort_by_key(|place| name(place) != name(&self.file));
        let now = if places.is_empty() { Now::Vanished } else { Now::Moved(places) };
        Difference { module: module.to_owned(), file: self.file, what: self.what, now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(file: &str, sought: Sought) -> Missing {
        Missing { file: file.to_owned(), what: "it".to_owned(), sought, found_in: BTreeSet::new() }
    }

    fn after(missing: Missing, files: &[(&str, &str)]) -> Now {
        let mut all = [missing];
        find(&mut all, files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let [missing] = all;
        missing.told("example.com/m@v2.0.0").now
    }

    #[test]
    fn what_another_file_has_moved_and_what_none_has_vanished() {
        let written = || Sought::Written("limit = time.Minute * 15".to_owned());
        let files = [
            ("a/old.go", "nothing"),
            ("b/x.go", "limit  =\ttime.Minute * 15"),
            ("c/old.go", "\nlimit = time.Minute * 15\n"),
        ];
        let moved = Now::Moved(vec!["c/old.go".to_owned(), "b/x.go".to_owned()]);
        assert_eq!(after(missing("a/old.go", written()), &files), moved);
        assert_eq!(after(missing("a/old.go", written()), &files[..1]), Now::Vanished);
        let document = [("README.md", "limit = time.Minute * 15")];
        assert_eq!(after(missing("a/old.go", written()), &document), Now::Vanished);
        let longer = [("b/x.go", "limit = time.Minute * 5")];
        assert_eq!(after(missing("a/old.go", written()), &longer), Now::Vanished);
    }

    #[test]
    fn a_log_line_moves_with_one_of_its_pieces() {
        let said = || Sought::Said("Failed to start{}err=\"{error}\"".to_owned());
        let moved = Now::Moved(vec!["b/new.go".to_owned()]);
        assert_eq!(after(missing("a/old.go", said()), &[("b/new.go", "Log(\"Failed to start\")")]), moved);
        assert_eq!(after(missing("a/old.go", said()), &[("b/new.go", "Log(\"Failed to stop\")")]), Now::Vanished);
    }
}
