//! The kubectl commands that an end-to-end test tries, one of each shape, in a file. `cargo test --test it fixes`
//! compares the file with the verdicts, so the end-to-end test judges nothing.

use super::{commands, split};
use crate::project;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// The file in the repository.
pub const FILE: &str = "tests/e2e/cluster/fixes.txt";

/// How to write the file.
pub const MAKE: &str = "NODEWHY_UPDATE=1 cargo test --test it fixes";

/// Verbs that change nothing.
const READS: [&str; 6] = ["get", "describe", "logs", "auth", "cluster-info", "version"];
/// Verbs that can be told to store nothing.
const WRITES: [&str; 7] = ["patch", "delete", "taint", "cordon", "uncordon", "drain", "scale"];

/// The line as the end-to-end test runs it: what it would change is only tried. `None` if it needs more than the API
/// server.
fn tried(line: &str, parts: &[Vec<String>]) -> Option<String> {
    let mut tried = line.to_owned();
    for words in parts {
        match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["kubectl", verb, ..] if READS.contains(verb) => {}
            ["kubectl", verb, ..]
                if WRITES.contains(verb) || words.get(1..3).is_some_and(|of| of == ["set", "env"]) =>
            {
                assert_eq!(parts.len(), 1, "what changes something stands alone: {line}");
                tried.push_str(" --dry-run=server");
            }
            ["grep", ..] => {}
            _ => return None,
        }
    }
    Some(tried)
}

/// Commands of one shape fail alike: the same verb, kinds, flags, format and selected fields, whatever the names.
fn shape(parts: &[Vec<String>]) -> String {
    let of = |words: &Vec<String>| {
        // The program, the verb and the kinds.
        let mut kept = 3_usize;
        let mut shape = Vec::new();
        for word in words {
            shape.push(match word.split(['=', '/']).next().unwrap_or(word) {
                start if kept > 0 || word.starts_with('-') => start,
                _ => "_",
            });
            kept = if ["-o", "--field-selector"].contains(&word.as_str()) { 1 } else { kept.saturating_sub(1) };
        }
        shape.join(" ")
    };
    parts.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// The text that the file must have: of each shape the first command and the page or case that it is from, in the order
/// of the shapes.
pub fn made() -> String {
    let mut shapes = BTreeMap::new();
    for (whence, line) in commands() {
        if let Some(parts) = split(&line)
            && let Some(tried) = tried(&line, &parts)
        {
            shapes.entry(shape(&parts)).or_insert((whence, tried));
        }
    }
    let mut made = format!(
        "# One kubectl command of each shape, and the page or case that it is from. Made by `{MAKE}`.\n\
         # `cargo xtask e2e cluster::fixes` runs them.\n"
    );
    for (whence, tried) in shapes.values() {
        assert!(!tried.contains('\n'), "{whence}: a command is one line: {tried:?}");
        // The line of an example changes with each example before it.
        let whence = whence.split(':').next().unwrap_or(whence);
        let _ = writeln!(made, "{whence}: {tried}");
    }
    made
}

/// Where the file is.
pub fn path() -> PathBuf {
    project().join(FILE)
}

/// The commands of the file, each with the page or case that it is from.
pub fn read() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(path()).unwrap_or_else(|error| panic!("{FILE}: {error}: run `{MAKE}`"));
    let entries = text.lines().filter(|entry| !entry.starts_with('#'));
    entries
        .map(|entry| {
            let (whence, line) = entry.split_once(": ").unwrap_or_else(|| panic!("{FILE}: no command: {entry:?}"));
            (whence.to_owned(), line.to_owned())
        })
        .collect()
}
