//! What `cargo xtask upstream` prints.

use std::fmt::Write;

use super::look_up::{Difference, Now};
use super::version::Version;
use crate::tables::Change;

/// A pin behind a release.
#[derive(Debug)]
pub struct Behind {
    pub module: String,
    pub pinned: Version,
    pub newest: Version,
    /// The files that pin it.
    pub places: Vec<String>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub struct Report {
    pub behind: Vec<Behind>,
    pub differences: Vec<Difference>,
    /// Tables that change, and with which version.
    pub tables: Vec<(String, Change)>,
    /// Modules of which no release exists, only commits.
    pub without_release: Vec<String>,
    /// What could not be looked up, and why.
    pub failures: Vec<String>,
    pub looked_up: usize,
}

/// How many names of a list are printed.
const MOST: usize = 12;

impl Report {
    /// 2 if something could not be looked up, 1 if there is something to do, else 0.
    pub fn exit_code(&self) -> u8 {
        if !self.failures.is_empty() {
            return 2;
        }
        u8::from(!(self.behind.is_empty() && self.differences.is_empty()))
    }

    /// The report, for a terminal or as the text of an issue.
    pub fn text(&self, markdown: bool) -> String {
        let mut text = Text { markdown, written: String::new() };
        let behind = self.behind.iter().map(|behind| {
            let places: Vec<String> = behind.places.iter().map(|place| text.code(place)).collect();
            format!("{} {} → {} in {}", text.code(&behind.module), behind.pinned, behind.newest, places.join(", "))
        });
        let behind: Vec<String> = behind.collect();
        let told = |now: fn(&Now) -> bool| -> Vec<String> {
            self.differences.iter().filter(|difference| now(&difference.now)).map(|d| text.difference(d)).collect()
        };
        let vanished = told(|now| matches!(now, Now::Vanished));
        let moved = told(|now| matches!(now, Now::Moved(_)));
        let unexpected = told(|now| matches!(now, Now::Unexpected));
        let tables = self.tables.iter().map(|(with, change)| text.change(with, change)).collect::<Vec<_>>();
        let without: Vec<String> = self.without_release.iter().map(|module| text.code(module)).collect();
        text.section("Newer releases", &behind);
        text.section("Vanished: no file of the module has it", &vanished);
        text.section("Moved: another file of the module has it", &moved);
        text.section("There, although `since` or `until` in the table says otherwise", &unexpected);
        text.section("Tables that `cargo xtask tables` will change", &tables);
        text.section("Not looked up", &self.failures);
        text.section("Pinned to a commit, because the project makes no releases", &without);
        let newer = self.behind.len();
        let summary = if self.exit_code() == 0 {
            "Every pin is at the newest release.".to_owned()
        } else {
            format!(
                "Pins behind: {newer}. Strings looked up in newer versions: {}. Vanished: {}. Moved: {}. Unexpected: \
                 {}.",
                self.looked_up,
                vanished.len(),
                moved.len(),
                unexpected.len()
            )
        };
        text.written + &summary + "\n"
    }
}

struct Text {
    markdown: bool,
    written: String,
}

impl Text {
    fn code(&self, text: &str) -> String {
        // A code span with one backtick cannot hold another.
        if self.markdown { format!("`{}`", text.replace('`', "'")) } else { text.to_owned() }
    }

    fn section(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        let _ = if self.markdown { writeln!(self.written, "## {title}\n") } else { writeln!(self.written, "{title}:") };
        let bullet = if self.markdown { "-" } else { " " };
        for line in lines {
            let _ = writeln!(self.written, "{bullet} {line}");
        }
        self.written.push('\n');
    }

    fn difference(&self, difference: &Difference) -> String {
        let Difference { module, file, what, now } = difference;
        let line = format!("{} {}: {}", self.code(module), self.code(file), self.code(what));
        match now {
            Now::Moved(places) => {
                let places: Vec<String> = places.iter().map(|place| self.code(place)).collect();
                format!("{line} is in {}", listed(&places, 3))
            }
            Now::Vanished | Now::Unexpected => line,
        }
    }

    fn change(&self, with: &str, change: &Change) -> String {
        let parts = [("added", &change.added), ("removed", &change.removed), ("changed", &change.changed)];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{} {what} ({})", names.len(), listed(names, MOST)))
            .collect();
        let parts = if parts.is_empty() { "only its first line".to_owned() } else { parts.join(", ") };
        format!("{} with {}: {parts}", self.code(change.table), self.code(with))
    }
}

/// The first names of a list, and how many more there are.
fn listed(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(now: Now) -> Difference {
        Difference {
            module: "example.com/m@v1.1.0".to_owned(),
            file: "a/b.go".to_owned(),
            what: "Reasons \"Gone\"".to_owned(),
            now,
        }
    }

    #[test]
    fn the_exit_code_says_whether_there_is_something_to_do() {
        let mut report = Report { without_release: vec!["example.com/commits".to_owned()], ..Report::default() };
        assert_eq!(report.exit_code(), 0);
        assert!(report.text(false).ends_with("Every pin is at the newest release.\n"));
        let version = |text| Version::parse(text).expect("a version");
        report.behind.push(Behind {
            module: "example.com/m".to_owned(),
            pinned: version("v1.0.0"),
            newest: version("v1.1.0"),
            places: vec!["table.toml".to_owned()],
        });
        assert_eq!(report.exit_code(), 1);
        report.failures.push("the proxy is silent".to_owned());
        assert_eq!(report.exit_code(), 2);
        let vanished = Report { differences: vec![difference(Now::Vanished)], ..Report::default() };
        assert_eq!(vanished.exit_code(), 1);
    }

    #[test]
    fn moved_and_vanished_are_told_apart() {
        let moved = Now::Moved(["c/b.go", "d.go", "e.go", "f.go"].map(str::to_owned).to_vec());
        let differences = vec![difference(Now::Vanished), difference(moved)];
        let report = Report { differences, looked_up: 7, ..Report::default() };
        let text = report.text(false);
        let line = "  example.com/m@v1.1.0 a/b.go: Reasons \"Gone\"";
        assert!(text.contains(&format!("Vanished: no file of the module has it:\n{line}\n\n")), "{text}");
        assert!(text.contains(&format!("{line} is in c/b.go, d.go, e.go and 1 more\n")), "{text}");
        assert!(
            text.contains("Strings looked up in newer versions: 7. Vanished: 1. Moved: 1. Unexpected: 0."),
            "{text}"
        );
        let markdown = report.text(true);
        assert!(markdown.contains("## Vanished"), "{markdown}");
        assert!(markdown.contains("\n- `example.com/m@v1.1.0` `a/b.go`: `Reasons \"Gone\"`\n"), "{markdown}");
    }
}
