//! Prose stays readable: rustfmt leaves a whole expression alone if one string in it is too long.

use std::fs;
use std::path::Path;
use testkit::project;

/// The rooms of the engine that speak to users.
const ROOMS: &[&str] =
    &["case", "diagnose", "effective", "explain", "facts", "lint", "remediation", "rules", "suspects", "triage"];

/// As in rustfmt.toml.
const WIDTH: usize = 120;

/// A word that no line break makes readable: a URL, a JSON path.
const UNBREAKABLE: usize = 60;

/// Whether a line is too long without need. Raw strings hold what upstream prints, and cannot be broken.
fn is_too_long(line: &str) -> bool {
    let is_raw = ["r\"", "r#"].iter().any(|start| line.contains(start));
    let holds_long_word = line.split(' ').any(|word| word.chars().count() > UNBREAKABLE);
    line.chars().count() > WIDTH && !is_raw && !holds_long_word
}

/// Adds the long lines of the Rust files below a folder. Tests may quote long lines.
fn long_lines(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            long_lines(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let product = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
            let long = product.enumerate().filter(|(_, line)| is_too_long(line));
            found.extend(long.map(|(n, _)| format!("{}:{}", path.display(), n + 1)));
        }
    }
}

#[test]
fn a_line_of_prose_has_at_most_120_columns() {
    let mut found = Vec::new();
    for room in ROOMS {
        let folder = project().join("crates/engine/src").join(room);
        assert!(folder.is_dir(), "{room} has moved");
        long_lines(&folder, &mut found);
    }
    assert!(found.is_empty(), "break these strings with a backslash: {found:#?}");
    assert!(is_too_long(&"word ".repeat(25)));
    assert!(!is_too_long(&format!("{}{}", "word ".repeat(12), "x".repeat(UNBREAKABLE + 1))));
}
