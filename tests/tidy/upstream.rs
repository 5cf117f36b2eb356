//! What nodewhy's source takes from upstream has a row in `tests/e2e/upstream/table.toml`, and each row is used.
//! `tests/e2e/upstream.rs` looks the rows up in upstream's source.

use crate::literals::{self, Literal};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use testkit::project;
use testkit::protobuf::messages;
use xtask::upstream::table::{Entry, FILE, Kind, Table};

fn table() -> Table {
    Table::read(project()).expect("the table is as xtask::upstream::table wants it")
}

/// All entries, with lookup and without.
fn entries(table: &Table) -> impl Iterator<Item = (Kind, &Entry)> {
    let looked_up = table.source.iter().flat_map(|source| &source.entries);
    let others = table.elsewhere.iter().flat_map(|elsewhere| &elsewhere.entries);
    looked_up.chain(others).flat_map(|(kind, entries)| entries.iter().map(|entry| (*kind, entry)))
}

/// The lines of the table that have this text, as the places of a message.
fn lines_of(text: &str) -> String {
    let table = fs::read_to_string(project().join(FILE)).expect("the table");
    let written = [format!("{text:?}"), format!("'{text}'")];
    let lines = table.lines().enumerate().filter(|(_, line)| written.iter().any(|text| line.contains(text.as_str())));
    let places: Vec<String> = lines.map(|(at, _)| format!("{FILE}:{}", at + 1)).collect();
    if places.is_empty() { FILE.to_owned() } else { places.join(", ") }
}

/// What is built into the program.
const SHIPPED: [&str; 4] = ["src", "crates/aws/src", "crates/engine/src", "crates/readers/src"];

/// A source file: its path below the root, its text, and its literals.
struct Source {
    name: String,
    text: String,
    literals: Vec<Literal>,
}

/// What is built into the program, read once.
static SOURCES: LazyLock<Vec<Source>> = LazyLock::new(|| {
    let files = rust_files(&SHIPPED).into_iter();
    files.map(|(name, text)| Source { literals: literals::of(&text), name, text }).collect()
});

/// The Rust files below these folders, without those of the tests of a crate.
fn rust_files(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut waiting, mut found) = (folders.iter().map(|folder| root.join(folder)).collect::<Vec<_>>(), Vec::new());
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            let entries =
                fs::read_dir(&path).expect("it is a folder").map(|entry| entry.expect("it can be read").path());
            waiting.extend(entries.filter(|path| !path.ends_with("tests")));
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

/// What looks like upstream's and needs no row.
fn known_without_a_row() -> BTreeSet<&'static str> {
    let mut known: BTreeSet<&str> = engine::remediation::guard::ALL.iter().map(|guard| guard.reason).collect();
    // A cause is called as upstream calls its reason where there is one; then the table has it from another place.
    known.extend(engine::rules::ALL.iter().map(|rule| rule.cause));
    known.extend(engine::suspects::PAGES.iter().map(|page| page.cause));
    // `tests/e2e/upstream/messages.rs` looks those up.
    for message in messages().into_values() {
        known.insert(message.name);
        known.extend(message.fields.iter().map(|field| field.name));
    }
    known
}

#[test]
fn every_name_in_the_source_that_looks_like_upstreams_is_in_the_table() {
    let table = table();
    let mut known: BTreeSet<&str> = entries(&table).map(|(_, entry)| entry.text()).collect();
    known.extend(table.own.iter().flat_map(|own| &own.names).map(String::as_str));
    known.extend(known_without_a_row());
    let mut unknown = Vec::new();
    for file in &*SOURCES {
        for literal in &file.literals {
            let names = names(literal).into_iter().filter(|name| !known.contains(name));
            unknown.extend(names.map(|name| format!("{}:{}: {name:?}", file.name, literal.line)));
        }
    }
    assert!(
        unknown.is_empty(),
        "{FILE} has no row of these. Add each text as it is here: to the [[source]] of the file that has it in a Go \
         module, to an [[elsewhere]] if no Go module has it, to an [[own]] if it is not upstream's. Then run \
         `cargo xtask e2e upstream`.\n{}",
        unknown.join("\n")
    );
}

#[test]
fn every_entry_of_the_table_is_used() {
    let table = table();
    let literals = || SOURCES.iter().flat_map(|file| &file.literals);
    let named: BTreeSet<&str> = literals().flat_map(names).collect();
    let said: BTreeSet<&str> = literals().map(|literal| literal.text.as_str()).chain(named.iter().copied()).collect();
    // A comment may go on in the next line.
    let flowing = |source: &str| {
        source
            .replace('\n', " ")
            .split_whitespace()
            .filter(|word| !word.starts_with("//"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let flowing: Vec<String> = SOURCES.iter().map(|file| flowing(&file.text)).collect();
    let is_written = |here: &str| flowing.iter().any(|source| source.contains(here));
    let stale =
        entries(&table).filter(|(_, entry)| !entry.here().map_or_else(|| said.contains(entry.text()), is_written));
    let stale: Vec<String> = stale
        .map(|(kind, entry)| (kind, entry.here().unwrap_or(entry.text())))
        .map(|(kind, text)| format!("{}: {kind:?} {text:?}", lines_of(text)))
        .collect();
    assert!(
        stale.is_empty(),
        "nothing that is shipped has the text of these rows. Take them out of the table, or correct their text:\n{}",
        stale.join("\n")
    );
    let idle = table.own.iter().flat_map(|own| &own.names).filter(|name| !named.contains(name.as_str()));
    let idle: Vec<String> = idle.map(|name| format!("{}: {name:?}", lines_of(name))).collect();
    assert!(
        idle.is_empty(),
        "no check needs these exceptions any more. Take them out of their [[own]]:\n{}",
        idle.join("\n")
    );
}

fn is_version(text: &str) -> bool {
    text.split('.').count() == 3
        && text.split('.').all(|number| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()))
}

/// If another test raises its version, `cargo xtask e2e upstream` must look there too.
#[test]
fn the_pins_are_those_of_the_control_plane() {
    const GO_MOD: &str = "crates/programs/control-plane/go.mod";
    let pins = table().pins;
    let go_mod = fs::read_to_string(project().join(GO_MOD)).expect("it is there");
    for (at, line) in go_mod.lines().enumerate() {
        let mut words = line.split_whitespace();
        if let (Some(module), Some(version)) = (words.next(), words.next())
            && let Some(pinned) = pins.get(module).filter(|_| version.starts_with('v') && version != "v0.0.0")
        {
            assert!(
                pinned.iter().any(|pin| pin == version),
                "{GO_MOD}:{}: {FILE} does not pin {module} {version}, but {pinned:?}. Add it to [pins]",
                at + 1
            );
        }
    }
    for (file, source) in rust_files(&["tests", "crates/testkit/src"]) {
        // Those are versions of Karpenter: `.karpenter("1.0.5")`, and lists of them.
        let of_cluster = if file.starts_with("tests/e2e/cluster/") { literals::of(&source) } else { Vec::new() };
        for Literal { text, line, .. } in of_cluster.into_iter().filter(|literal| is_version(&literal.text)) {
            assert!(
                pins["sigs.k8s.io/karpenter"].contains(&format!("v{text}")),
                "{file}:{line}: {FILE} does not pin Karpenter v{text}. Add it to [pins]"
            );
        }
        for (module, pinned) in &pins {
            let named = format!("{module}@");
            for (at, _) in source.match_indices(&named) {
                let version = source[at + named.len()..].split('"').next().unwrap_or_default();
                let is_named = version.starts_with('v') && !version.starts_with("v{");
                assert!(
                    !is_named || pinned.iter().any(|pin| pin == version),
                    "{file}:{}: {FILE} does not pin {module}@{version}. Add it to [pins]",
                    source[..at].matches('\n').count() + 1
                );
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
