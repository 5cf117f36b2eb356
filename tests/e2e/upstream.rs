//! Upstream moves: what nodewhy's rules take from it stands in one table, and here in the source of every pinned
//! version.

mod lines;
mod literals;
mod messages;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    thread,
};

use literals::Literal;
use testkit::go::module_source;
use xtask::upstream::table::{Entry, Kind, Source, Table, one_line};

fn table() -> Table {
    Table::read(testkit::project()).expect("the table is as xtask::upstream::table wants it")
}

/// All entries, with lookup and without.
fn entries(table: &Table) -> impl Iterator<Item = (Kind, &Entry)> {
    let looked_up = table.source.iter().flat_map(|source| &source.entries);
    let others = table.elsewhere.iter().flat_map(|elsewhere| &elsewhere.entries);
    looked_up.chain(others).flat_map(|(kind, entries)| entries.iter().map(|entry| (*kind, entry)))
}

/// What is built into the program.
const SHIPPED: [&str; 4] = ["src", "crates/aws/src", "crates/engine/src", "crates/readers/src"];

/// The Rust files below these folders, without those of tests.
fn rust_files(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut waiting, mut found) = (folders.iter().map(|folder| root.join(folder)).collect::<Vec<_>>(), Vec::new());
    while let Some(path) = waiting.pop() {
        if path.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            waiting.extend(
                fs::read_dir(&path).expect("it is a folder").map(|entry| entry.expect("it can be read").path()),
            );
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let name = path.strip_prefix(root).expect("it is below the root").display().to_string();
            found.push((name, fs::read_to_string(&path).expect("source is UTF-8")));
        }
    }
    found.sort();
    let only_tested: BTreeSet<String> =
        found.iter().flat_map(|(name, source)| modules_of_tests(source).map(|module| file_of(name, module))).collect();
    found.retain(|(name, _)| !only_tested.contains(name));
    found
}

/// The modules that a file declares for its tests, each in a file of its own.
fn modules_of_tests(source: &str) -> impl Iterator<Item = &str> {
    let declared = source.split("#[cfg(test)]\nmod ").skip(1).filter_map(|rest| rest.split_once(';'));
    declared.map(|(module, _)| module).filter(|module| module.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
}

/// The file of a module that the file `parent` declares.
fn file_of(parent: &str, module: &str) -> String {
    let folder = ["/lib.rs", "/main.rs", ".rs"].iter().find_map(|end| parent.strip_suffix(end));
    format!("{}/{module}.rs", folder.unwrap_or(parent))
}

#[test]
fn a_file_that_only_tests_read_is_found_by_its_declaration() {
    let source = "mod names;\n#[cfg(test)]\nmod shapes;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n";
    assert_eq!(modules_of_tests(source).collect::<Vec<_>>(), ["shapes"]);
    assert_eq!(file_of("src/source_text.rs", "shapes"), "src/source_text/shapes.rs");
    assert_eq!(file_of("src/lib.rs", "shapes"), "src/shapes.rs");
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

/// The names in a literal that look like upstream's: keys with a domain, words in CamelCase, what is looked for in a
/// text.
///
/// Not seen: single words in lower case (flags, settings, fields), and messages in a list that a loop compares. The
/// table has those that their author put there.
fn names(literal: &Literal) -> BTreeSet<&str> {
    let text = literal.text.as_str();
    let is_camel_case = text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.contains(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric());
    let is_looked_for = literal.compared && text.len() > 3 && text.contains(|c: char| c.is_ascii_alphabetic());
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"./-_".contains(c));
    // A sentence may end with a key.
    let mut names: BTreeSet<&str> = words.map(|word| word.trim_end_matches('.')).filter(|word| is_key(word)).collect();
    if is_camel_case || is_looked_for {
        names.insert(text);
    }
    names
}

/// `example.com/name`, and the prefix `example.com/`; no URL.
fn is_key(word: &str) -> bool {
    word.split_once('/').is_some_and(|(domain, name)| {
        let is_label =
            |l: &str| !l.is_empty() && l.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        domain.contains('.') && domain.split('.').all(is_label) && !name.contains('/')
    })
}

#[test]
fn every_name_in_the_source_that_looks_like_upstreams_is_in_the_table() {
    let table = table();
    let mut known: BTreeSet<&str> = entries(&table).map(|(_, entry)| entry.text()).collect();
    known.extend(table.own.iter().flat_map(|own| &own.names).map(String::as_str));
    known.extend(engine::remediation::guard::ALL.iter().map(|guard| guard.reason));
    // A cause is called as upstream calls its reason where there is one; then the table has it from another place.
    known.extend(engine::rules::ALL.iter().map(|rule| rule.cause));
    // Those have a test of their own.
    for name in messages::names() {
        known.insert(name);
    }
    known.extend(engine::suspects::PAGES.iter().map(|page| page.cause));
    let mut unknown = Vec::new();
    for (file, source) in rust_files(&SHIPPED) {
        for literal in literals::of(&source) {
            unknown.extend(
                names(&literal)
                    .into_iter()
                    .filter(|name| !known.contains(name))
                    .map(|name| format!("{file}: {name:?}")),
            );
        }
    }
    assert!(unknown.is_empty(), "add to tests/e2e/upstream/table.toml:\n{}", unknown.join("\n"));
}

#[test]
fn every_entry_of_the_table_is_used() {
    let table = table();
    let files = rust_files(&SHIPPED);
    let literals: Vec<Literal> = files.iter().flat_map(|(_, source)| literals::of(source)).collect();
    let named: BTreeSet<&str> = literals.iter().flat_map(names).collect();
    let said: BTreeSet<&str> =
        literals.iter().map(|literal| literal.text.as_str()).chain(named.iter().copied()).collect();
    // A comment may go on in the next line.
    let flowing = |source: &String| {
        source
            .replace('\n', " ")
            .split_whitespace()
            .filter(|word| !word.starts_with("//"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let flowing: Vec<String> = files.iter().map(|(_, source)| flowing(source)).collect();
    let is_written = |here: &str| flowing.iter().any(|source| source.contains(here));
    let stale =
        entries(&table).filter(|(_, entry)| !entry.here().map_or_else(|| said.contains(entry.text()), is_written));
    let stale: Vec<String> =
        stale.map(|(kind, entry)| format!("{kind:?} {:?}", entry.here().unwrap_or(entry.text()))).collect();
    assert_eq!(stale, [""; 0], "nothing that is shipped has these; take them out of tests/e2e/upstream/table.toml");
    let idle: Vec<&String> =
        table.own.iter().flat_map(|own| &own.names).filter(|name| !named.contains(name.as_str())).collect();
    assert_eq!(idle, [""; 0], "exceptions that nothing needs");
}

fn is_version(text: &str) -> bool {
    text.split('.').count() == 3
        && text.split('.').all(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// Where another test raises its version, this one must look there too.
#[test]
fn the_pins_are_those_of_the_control_plane() {
    let pins = table().pins;
    let go_mod =
        fs::read_to_string(testkit::project().join("crates/programs/control-plane/go.mod")).expect("it is there");
    for line in go_mod.lines() {
        let mut words = line.split_whitespace();
        if let (Some(module), Some(version)) = (words.next(), words.next())
            && let Some(pinned) = pins.get(module).filter(|_| version.starts_with('v') && version != "v0.0.0")
        {
            assert!(pinned.iter().any(|pin| pin == version), "go.mod has {module} {version}, the table {pinned:?}");
        }
    }
    for (file, source) in rust_files(&["tests", "crates/testkit/src"]) {
        // Those are versions of Karpenter: `.karpenter("1.0.5")`, and lists of them.
        let numbers = literals::of(&source).into_iter().map(|literal| literal.text).filter(|text| is_version(text));
        for version in numbers.filter(|_| file.starts_with("tests/e2e/cluster/")).map(|number| format!("v{number}")) {
            assert!(
                pins["sigs.k8s.io/karpenter"].contains(&version),
                "{file} has Karpenter {version}, which is not pinned"
            );
        }
        for (module, pinned) in &pins {
            for version in source
                .split(&format!("{module}@"))
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .filter(|v| v.starts_with('v') && !v.starts_with("v{"))
            {
                assert!(pinned.iter().any(|pin| pin == version), "{file} has {module}@{version}, which is not pinned");
            }
        }
    }
}

#[test]
fn names_are_seen_where_rules_have_them() {
    let source = r##"
        /// Says "NotThis".
        #[doc = "NorThis"]
        const KEY: &str = "example.com/taint";
        fn check(m: &str) -> bool {
            let shown = format!("the label example.com/zone of {m}, see https://example.com/page");
            m == "CamelCase" || m.contains("words in lower case") || m.starts_with("two")
        }
        #[cfg(test)]
        use super::Example;
        fn after() -> &'static str { r#"AfterAUse"# }
        #[cfg(test)]
        mod tests { const T: &str = "InATest"; }
        const LAST: &str = "AfterTests";
    "##;
    let found = literals::of(source);
    let found: Vec<&str> = found.iter().flat_map(names).collect();
    let wanted =
        ["example.com/taint", "example.com/zone", "CamelCase", "words in lower case", "AfterAUse", "AfterTests"];
    assert_eq!(found, wanted);
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
