//! The real cases in tests/cases. Most tests judge all of them, so each YAML text is parsed once per process and kept
//! as JSON, which is read twenty times as fast.

use crate::objects::{documents_of, without_lists};
use benchmark::case::{self, Dump};
use engine::objects::sink::Sink;
use nodewhy::ingest::dump::{Summary, load_from};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

static DUMPS: LazyLock<BTreeMap<PathBuf, OnceLock<String>>> =
    LazyLock::new(|| case_folders().into_iter().map(|folder| (folder, OnceLock::new())).collect());

/// The folders of the real cases, in order.
pub fn case_folders() -> Vec<PathBuf> {
    let cases = crate::project().join("tests/cases");
    let entries = std::fs::read_dir(cases).expect("the cases").map(|entry| entry.expect("an entry").path());
    let mut folders: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The documents of a case's dump, one in a line.
fn dump(folder: &Path) -> &'static str {
    let dump = DUMPS.get(folder).unwrap_or_else(|| panic!("{}: no case", folder.display()));
    dump.get_or_init(|| {
        let documents = match case::read_dump(folder) {
            Ok(Dump::Whole(text)) => documents_of(&text),
            Ok(Dump::Difference(objects)) => objects,
            Err(error) => panic!("{}: {error}", folder.display()),
        };
        documents.iter().fold(String::new(), |mut lines, document| {
            let _ = writeln!(lines, "{document}");
            lines
        })
    })
}

/// Reads a case's cluster. tests/it/surveys.rs reads the YAML of a whole dump itself.
pub fn load_case(folder: &Path, sink: &mut dyn Sink) -> Summary {
    let mut summary = Summary::default();
    load_from(&folder.display().to_string(), dump(folder).as_bytes(), sink, &mut summary);
    summary
}

/// The objects of a case's cluster: its documents, and the items of its lists.
pub fn case_objects(folder: &Path) -> Vec<Value> {
    let documents = dump(folder).lines().map(|line| serde_json::from_str(line).expect("JSON"));
    without_lists(documents.collect())
}
