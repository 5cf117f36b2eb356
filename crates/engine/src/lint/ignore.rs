//! Comments that silence findings: `# nodewhy: ignore[KubeletRefusesLabels] the kubelet is our own`, on the line or
//! alone above it.
//!
//! They count in YAML and in user data alike: both have `#`, and a finding stands on a line of the file.

use super::place::Place;
use super::{Level, LintFinding, Mistake};
use crate::api::Blame;

const BEGINS: &str = "# nodewhy: ignore[";

/// One such comment.
struct Ignore {
    file: String,
    line: usize,
    column: usize,
    causes: Vec<Cause>,
    has_reason: bool,
    /// Nothing else is on its line: it is about the next one.
    alone: bool,
    object: Blame,
}

struct Cause {
    name: String,
    used: bool,
}

/// The comments of all that is linted.
#[derive(Default)]
pub struct Ignores(Vec<Ignore>);

impl Ignores {
    /// Reads the text of an object, or of user data, that begins on `first` of `file`.
    pub fn read(&mut self, file: &str, text: &str, first: usize, object: &Blame) {
        let file = file.strip_prefix("./").unwrap_or(file);
        for (number, line) in text.lines().enumerate().map(|(at, line)| (first + at, line)) {
            let Some((before, inside)) = line.split_once(BEGINS) else { continue };
            let Some((causes, reason)) = inside.split_once(']') else { continue };
            // The items of a list may share their text.
            if self.0.iter().any(|known| known.file == file && known.line == number) {
                continue;
            }
            let causes = causes.split(',').map(str::trim).filter(|name| !name.is_empty());
            self.0.push(Ignore {
                file: file.to_owned(),
                line: number,
                column: before.chars().count() + 1,
                causes: causes.map(|name| Cause { name: name.to_owned(), used: false }).collect(),
                has_reason: reason.chars().any(char::is_alphanumeric),
                alone: before.trim().is_empty(),
                object: object.clone(),
            });
        }
    }

    /// Takes out the findings that a comment silences, and adds what is wrong with the comments.
    pub fn apply(mut self, findings: &mut Vec<LintFinding>) {
        findings.retain(|finding| {
            let about = |ignore: &&mut Ignore| {
                ignore.file == finding.file && ignore.line + usize::from(ignore.alone) == finding.line
            };
            let causes = self.0.iter_mut().filter(about).flat_map(|ignore| &mut ignore.causes);
            let mut named = causes.filter(|cause| cause.name == finding.cause).peekable();
            let shown = named.peek().is_none();
            named.for_each(|cause| cause.used = true);
            shown
        });
        for ignore in &self.0 {
            let unused = ignore.causes.iter().filter(|cause| !cause.used);
            findings.extend(unused.map(|Cause { name, .. }| {
                ignore.finding(
                    "UnusedIgnore",
                    format!("Nothing is found here that ignore[{name}] would silence."),
                    "Remove it.",
                )
            }));
            if !ignore.has_reason {
                let message = "This comment silences a finding and does not say why.".to_owned();
                findings.push(ignore.finding("IgnoreWithoutReason", message, "Write the reason behind the bracket."));
            }
        }
    }
}

impl Ignore {
    fn finding(&self, cause: &str, message: String, fix: &str) -> LintFinding {
        let place = Place { line: self.line, column: self.column, exact: true };
        let mistake = Mistake {
            level: Level::Warning,
            cause: cause.to_owned(),
            message,
            fix: Some(fix.to_owned()),
            blame: self.object.clone(),
            grave: false,
        };
        mistake.at(&self.file, place)
    }
}
