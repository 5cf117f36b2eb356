//! A name of this project means one thing: no two types that another module can see are called the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names that two types may share, and why.
const SHARED: [(&str, &str); 2] = [
    ("Condition", "Kubernetes has it in every API: here in ours, and in what is read of others'"),
    ("Error", "each module that can fail has one, and nobody uses it without the module's name"),
];

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The type that a line makes, where another module can see it.
fn type_made(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = if let Some(scope) = rest.strip_prefix('(') { scope.split_once(')')?.1 } else { rest };
    let mut words = rest.split_whitespace();
    let name = ["struct", "enum", "trait", "type", "union"].contains(&words.next()?).then(|| words.next()).flatten()?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn no_two_types_have_one_name() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates/aws/src", "crates/engine/src", "crates/logs/src", "crates/readers/src"] {
        rust_files(&root.join(folder), &mut files);
    }
    files.sort();
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source in UTF-8");
        for (number, name) in text.lines().enumerate().filter_map(|(number, line)| Some((number + 1, type_made(line)?)))
        {
            let file = file.strip_prefix(root).expect("below the root").display();
            places.entry(name.to_owned()).or_default().push(format!("{file}:{number}"));
        }
    }
    assert!(places.len() > 200, "the types are not found: {}", places.len());
    let shared = |name: &str| SHARED.iter().any(|(permitted, _)| *permitted == name);
    let twice: Vec<_> = places.iter().filter(|(name, at)| at.len() > 1 && !shared(name)).collect();
    assert!(twice.is_empty(), "rename one of each, or argue in tests/names.rs: {twice:#?}");
    let idle: Vec<_> = SHARED.iter().filter(|(name, _)| places.get(*name).is_none_or(|at| at.len() < 2)).collect();
    assert!(idle.is_empty(), "they are argued for and not needed: {idle:?}");
}

#[test]
fn a_type_is_seen_however_visible_it_is() {
    let lines = [
        ("pub struct Node {", Some("Node")),
        ("    pub(super) enum Fate<'a> {", Some("Fate")),
        ("pub(crate) type Text = Cow<'static, str>;", Some("Text")),
        ("pub trait Ask: Send {", Some("Ask")),
        ("struct Hidden;", None),
        ("pub fn structure() {", None),
        ("pub mod types;", None),
        ("// pub struct Gone;", None),
    ];
    for (line, name) in lines {
        assert_eq!(type_made(line), name, "{line}");
    }
}
