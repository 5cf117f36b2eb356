//! The table of what nodewhy takes from upstream: table.toml says how to read it.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::version::Version;

/// Where it is.
pub const FILE: &str = "tests/e2e/upstream/table.toml";

/// All of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The versions of each module that are looked at.
    pub pins: BTreeMap<String, Vec<String>>,
    pub source: Vec<Source>,
    pub elsewhere: Vec<Elsewhere>,
    pub own: Vec<Own>,
}

/// A file of a Go module.
#[derive(Debug, Deserialize)]
pub struct Source {
    pub module: String,
    pub file: String,
    since: Option<String>,
    until: Option<String>,
    #[serde(flatten)]
    pub entries: BTreeMap<Kind, Vec<Entry>>,
}

/// What is no Go module that can be downloaded.
#[derive(Debug, Deserialize)]
pub struct Elsewhere {
    #[expect(dead_code, reason = "for the reader of the table")]
    source: String,
    #[expect(dead_code, reason = "for the reader of the table")]
    version: Option<String>,
    #[serde(flatten)]
    pub entries: BTreeMap<Kind, Vec<Entry>>,
}

/// What looks like upstream's and is not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    #[expect(dead_code, reason = "for the reader of the table")]
    why: String,
    pub names: Vec<String>,
}

/// What an entry is to upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Annotations,
    Conditions,
    Errors,
    Events,
    Finalizers,
    Flags,
    Labels,
    Messages,
    Names,
    Reasons,
    Resources,
    Settings,
    Taints,
    Timeouts,
}

/// A string of upstream.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    Plain(String),
    Full(Box<Full>),
}

/// An entry with more than its text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Full {
    text: String,
    #[serde(rename = "as")]
    written: Option<String>,
    since: Option<String>,
    until: Option<String>,
    here: Option<String>,
}

impl Table {
    /// The table of the repository at `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(root.join(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{FILE}: {error}"))
    }
}

impl Entry {
    /// As our source has it.
    pub fn text(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Full(full) => &full.text,
        }
    }

    /// What our source says where it does not have the text.
    pub fn here(&self) -> Option<&str> {
        self.full().and_then(|full| full.here.as_deref())
    }

    fn full(&self) -> Option<&Full> {
        match self {
            Self::Plain(_) => None,
            Self::Full(full) => Some(full),
        }
    }
}

impl Source {
    /// What `entry` looks like in the file.
    pub fn written(&self, kind: Kind, entry: &Entry) -> String {
        let is_go = self.file.rsplit('.').next() == Some("go");
        match entry.full().and_then(|full| full.written.as_deref()) {
            Some(written) => one_line(written),
            None if is_go && kind != Kind::Messages => format!("{:?}", entry.text()),
            None => one_line(entry.text()),
        }
    }

    /// What is wrong with `entry` in the file of that version, given in [`one_line`]; `None` for `file` if there is no
    /// such file.
    pub fn fault(&self, kind: Kind, entry: &Entry, version: &str, file: Option<&str>) -> Option<Fault> {
        let full = entry.full();
        let since = full.and_then(|full| full.since.as_ref()).or(self.since.as_ref());
        let until = full.and_then(|full| full.until.as_ref()).or(self.until.as_ref());
        let wanted = since.is_none_or(|since| parsed(version) >= parsed(since))
            && until.is_none_or(|until| parsed(version) < parsed(until));
        let is_there = file.is_some_and(|file| file.contains(&self.written(kind, entry)));
        match (wanted, is_there) {
            (true, true) | (false, false) => None,
            (true, false) if file.is_none() => Some(Fault::FileGone),
            (true, false) => Some(Fault::Missing),
            (false, true) => Some(Fault::Unexpected),
        }
    }

    /// The same as a sentence.
    pub fn complaint(&self, kind: Kind, entry: &Entry, version: &str, file: Option<&str>) -> Option<String> {
        let fault = self.fault(kind, entry, version, file)?;
        let (written, text) = (self.written(kind, entry), entry.text());
        Some(format!("{}@{version} {}: {kind:?} {text:?}, written {written}: {fault}", self.module, self.file))
    }
}

/// What is wrong with an entry in a version of its module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    FileGone,
    Missing,
    /// It is there, and `since` or `until` says that it is not.
    Unexpected,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileGone => "the file is gone",
            Self::Missing => "is not there",
            Self::Unexpected => "is there, outside of the versions that the table gives it",
        })
    }
}

fn parsed(version: &str) -> Version {
    Version::parse(version).unwrap_or_else(|| panic!("{version} is no version"))
}

/// White space as one blank: gofmt aligns what stands in a block anew with every longer neighbour.
pub fn one_line(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.ends_with(char::is_whitespace) {
        line.push(' ');
    }
    line
}
