//! A case: a folder with a dump, perhaps logs, and `expect.json`, which says what is true.

use crate::difference::{self, Templates};
use crate::{documents, yaml};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What is true of a case. tests/cases/README.md says what each field means.
#[derive(Debug, Clone, Deserialize)]
pub struct Truth {
    pub now: String,
    pub sick: BTreeSet<String>,
    #[serde(default)]
    pub sick_other: BTreeSet<String>,
    #[serde(default)]
    pub sick_alternatives: BTreeSet<String>,
    #[serde(default)]
    pub also_ok: BTreeSet<String>,
    #[serde(default)]
    pub must_mention: Vec<String>,
    #[serde(default)]
    pub suspect_words: Vec<String>,
    #[serde(default)]
    pub must_not_blame: Vec<String>,
    #[serde(default)]
    pub must_not_rule_out: Vec<String>,
    pub object_to_fix: String,
    #[serde(default)]
    pub object_to_fix_alternatives: BTreeSet<String>,
    pub observable: Observable,
}

/// A dump as a case's folder has it.
#[derive(Debug, Clone)]
pub enum Dump {
    /// The text of `cluster.yaml`.
    Whole(String),
    /// The objects of `cluster.diff.yaml`.
    Difference(Vec<Value>),
}

/// The dump in a case's folder.
pub fn read_dump(folder: &Path) -> io::Result<Dump> {
    let path = folder.join("cluster.diff.yaml");
    if !path.exists() {
        return fs::read_to_string(folder.join("cluster.yaml")).map(Dump::Whole);
    }
    let objects = difference::expand(&fs::read_to_string(&path)?, Templates::of_corpus());
    objects.map(Dump::Difference).map_err(|why| io::Error::other(format!("{}: {why}", path.display())))
}

/// The text of the dump in a case's folder.
pub fn dump(folder: &Path) -> io::Result<String> {
    Ok(match read_dump(folder)? {
        Dump::Whole(text) => text,
        Dump::Difference(objects) => yaml::list(&objects),
    })
}

/// What the objects and logs of a case tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observable {
    /// They prove the cause.
    Full,
    /// They hint at it.
    Partial,
    /// They cannot tell.
    None,
}

#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    pub folder: PathBuf,
    pub truth: Truth,
}

impl Truth {
    /// Nothing is wrong, however it looks.
    pub fn is_healthy(&self) -> bool {
        self.sick.is_empty() && self.sick_other.is_empty()
    }
}

impl Case {
    /// The cases below a folder, by name.
    pub fn all(folder: &Path) -> io::Result<Vec<Self>> {
        let mut cases = Vec::new();
        for entry in fs::read_dir(folder)? {
            let folder = entry?.path();
            if folder.join("expect.json").is_file() {
                cases.push(Self::read(&folder)?);
            }
        }
        cases.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(cases)
    }

    pub fn read(folder: &Path) -> io::Result<Self> {
        let truth = serde_json::from_str(&fs::read_to_string(folder.join("expect.json"))?)?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, folder: folder.to_owned(), truth })
    }

    /// Its number, which tells nothing of the cause, as its name does.
    pub fn number(&self) -> &str {
        self.name.split('-').next().unwrap_or(&self.name)
    }

    /// Its dump, as `kubectl get -o yaml` prints it.
    pub fn dump(&self) -> io::Result<String> {
        dump(&self.folder)
    }

    /// All objects of its dump.
    pub fn objects(&self) -> io::Result<Vec<Value>> {
        match read_dump(&self.folder)? {
            Dump::Whole(text) => documents::read(&text).map_err(|error| self.error(&error)),
            Dump::Difference(objects) => Ok(objects),
        }
    }

    fn error(&self, why: &io::Error) -> io::Error {
        io::Error::other(format!("{}: {why}", self.name))
    }

    /// Its logs: a folder or an archive.
    pub fn logs(&self) -> Option<PathBuf> {
        ["logs", "logs.tar.gz"].map(|name| self.folder.join(name)).into_iter().find(|path| path.exists())
    }

    /// Where it was reported: what `case.md` says behind `**Source:**`.
    pub fn source(&self) -> io::Result<String> {
        let text = fs::read_to_string(self.folder.join("case.md"))?;
        let said = text.lines().find_map(|line| line.split_once("**Source:**")).map(|(_, said)| said.trim().to_owned());
        said.ok_or_else(|| io::Error::other(format!("{}: case.md names no source", self.name)))
    }
}
