//! Upstream moves: what nodewhy's rules take from it stands in one table, and here in the source of every pinned
//! version. `tests/tidy/upstream.rs` compares the table with nodewhy's own source.

mod lines;
mod messages;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;

use testkit::go::module_source;
use xtask::upstream::table::{Source, Table, one_line};

fn table() -> Table {
    Table::read(testkit::project()).expect("the table is as xtask::upstream::table wants it")
}

#[test]
fn every_entry_stands_upstream_in_its_versions_and_in_no_others() {
    let table = table();
    let sources = download(&table.pins);
    let mut complaints = Vec::new();
    let mut looked_up = 0;
    for source in &table.source {
        let versions = table.pins.get(&source.module).unwrap_or_else(|| panic!("{} has no pin", source.module));
        for version in versions {
            let file = fs::read_to_string(sources[&(source.module.as_str(), version.as_str())].join(&source.file)).ok();
            let file = file.as_deref().map(one_line);
            for (kind, entry) in
                source.entries.iter().flat_map(|(kind, entries)| entries.iter().map(|entry| (*kind, entry)))
            {
                looked_up += 1;
                complaints.extend(source.complaint(kind, entry, version, file.as_deref()));
            }
        }
    }
    assert!(complaints.is_empty(), "{} of {looked_up} look-ups fail:\n{}", complaints.len(), complaints.join("\n"));
}

/// The folder of every pinned module.
fn download(pins: &BTreeMap<String, Vec<String>>) -> BTreeMap<(&str, &str), PathBuf> {
    thread::scope(|scope| {
        let pinned = pins
            .iter()
            .flat_map(|(module, versions)| versions.iter().map(|version| (module.as_str(), version.as_str())));
        let started: Vec<_> = pinned
            .map(|(module, version)| {
                ((module, version), scope.spawn(move || module_source(&format!("{module}@{version}"))))
            })
            .collect();
        started.into_iter().map(|(pin, source)| (pin, source.join().expect("it can be downloaded"))).collect()
    })
}

#[test]
fn what_vanished_came_early_or_lost_its_file_is_told() {
    let text = r#"
        module = "example.com/m"
        file = "a.go"
        reasons = ["Whole", { text = "New", since = "v1.2.0" }, { text = "Old", until = "v1.2.0" }]
        messages = ["part of a"]
        timeouts = [{ text = "limit", as = "limit = time.Minute * 15" }]
    "#;
    let source: Source = toml::from_str(text).expect("it is a source");
    let complaints = |version: &str, file: Option<&str>| -> Vec<String> {
        let file = file.map(one_line);
        let entries = source.entries.iter().flat_map(|(kind, entries)| entries.iter().map(|entry| (*kind, entry)));
        entries
            .filter_map(|(kind, entry)| {
                Some((entry.text().to_owned(), source.complaint(kind, entry, version, file.as_deref())?))
                    .map(|(t, _)| t)
            })
            .collect()
    };
    let old = "\"Whole\" \"Old\" \"a part of a message\"\n\tlimit   = time.Minute * 15";
    let none: [&str; 0] = [];
    assert_eq!(complaints("v1.1.9", Some(old)), none);
    assert_eq!(complaints("v1.2.0", Some(old)), ["New", "Old"]);
    assert_eq!(complaints("v1.2.0", Some(&old.replace("Old", "New"))), none);
    assert_eq!(
        complaints("v1.1.9", Some("\"Wholesome\" \"Old\" limit = time.Minute * 10")),
        ["part of a", "Whole", "limit"]
    );
    assert_eq!(complaints("v1.2.0", None), ["part of a", "Whole", "New", "limit"]);
}
