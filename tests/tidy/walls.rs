//! The crates that judge cannot do IO: their dependencies are few, and none of them reaches a file, a socket or a
//! runtime. What the standard library offers of it, clippy forbids there (`clippy.toml` of each crate).
//!
//! Between the crates cargo keeps the order. Within the engine the tests below do, by reading its source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Runtimes, clients, servers, terminals: with one of these in its tree a crate could do IO.
const IO: [&str; 22] = [
    "async-std",
    "axum",
    "clap",
    "curl",
    "h2",
    "hyper",
    "hyper-util",
    "kube",
    "kube-client",
    "kube-runtime",
    "mio",
    "nodewhy",
    "nodewhy-aws",
    "quinn",
    "reqwest",
    "rustls",
    "smol",
    "socket2",
    "tar",
    "tokio",
    "tower",
    "tracing-subscriber",
];

/// What the pure crates may use: a new dependency is argued for here.
const READERS: [&str; 4] = ["serde", "serde-saphyr", "serde_json", "toml"];
const LOGS: [&str; 8] =
    ["aho-corasick", "base64", "chrono", "memchr", "nodewhy-readers", "serde", "serde_json", "toml"];
// The schemas of kinds need three: kube-cel for their rules, regex for their patterns, and strsim for misspelt fields.
const ENGINE: [&str; 16] = [
    "arcstr",
    "chrono",
    "json-patch",
    "k8s-openapi",
    "kube-cel",
    "kube-core",
    "kube-derive",
    "nodewhy-logs",
    "nodewhy-readers",
    "regex",
    "schemars",
    "serde",
    "serde-saphyr",
    "serde_json",
    "strsim",
    "thiserror",
];

/// The names of what a package depends on, itself left out.
fn dependencies(package: &str, depth: Option<u8>) -> BTreeSet<String> {
    let depth = depth.map_or_else(|| "--depth=1000".to_owned(), |depth| format!("--depth={depth}"));
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--edges=normal",
            "--prefix=none",
            "--format={p}",
            "--package",
            package,
            &depth,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    listed
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != package)
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_crates_that_judge_depend_on_nothing_that_does_io() {
    let pure = [("nodewhy-readers", &READERS[..]), ("nodewhy-logs", &LOGS[..]), ("nodewhy-engine", &ENGINE[..])];
    for (package, permitted) in pure {
        let direct = dependencies(package, Some(1));
        let unargued: Vec<_> = direct.iter().filter(|name| !permitted.contains(&name.as_str())).collect();
        assert!(
            unargued.is_empty(),
            "{package} gained {unargued:?}: argue for them in tests/tidy/walls.rs, or do without"
        );
        let all = dependencies(package, None);
        let doing_io: Vec<_> = IO.iter().filter(|name| all.contains(**name)).collect();
        assert!(doing_io.is_empty(), "{package} could do IO by {doing_io:?}");
    }
}

#[test]
fn the_readers_know_nothing_of_kubernetes() {
    // The readers are below the logs.
    let all = dependencies("nodewhy-logs", None);
    let kubernetes: Vec<_> = all.iter().filter(|name| name.starts_with("k8s-") || name.starts_with("kube")).collect();
    assert!(kubernetes.is_empty(), "{kubernetes:?}");
}

#[test]
fn the_list_of_what_does_io_is_not_empty_talk() {
    let binary = dependencies("nodewhy", None);
    assert!(["tokio", "hyper", "kube-client", "clap"].iter().all(|name| binary.contains(*name)), "{binary:?}");
}

/// The engine's modules, each of which knows only those before it. Those of one line stand side by side.
const LAYERS: [&[&str]; 12] = [
    &["api", "objects"],
    &["upstream"],
    &["effective"],
    &["cluster_state"],
    &["case"],
    &["facts"],
    &["explain"],
    &["rules"],
    &["suspects"],
    &["diagnose"],
    &["lint", "remediation"],
    &["triage"],
];

/// A source file: its module path, and its code without comments and tests.
struct Source {
    module: Vec<String>,
    code: String,
}

fn engine() -> Vec<Source> {
    sources("crates/engine/src")
}

/// All source files below a folder of the repository.
fn sources(root: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.file_name().is_some_and(|name| name == "tests.rs") || path.extension().is_none_or(|end| end != "rs")
            {
                continue;
            }
            let text = fs::read_to_string(&path).expect("a source file");
            let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
            let code = lines.filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
            let module = path.strip_prefix(&root).expect("below the root").with_extension("");
            let module = module.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            sources.push(Source { module, code });
        }
    }
    sources
}

impl Source {
    /// What it names of its crate: `["explain", "pull"]`, with whatever follows.
    fn names(&self) -> Vec<Vec<String>> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let mut named = Vec::new();
        for (at, _) in self.code.match_indices("crate::").filter(|(at, _)| !self.code[..*at].ends_with(is_part)) {
            assert!(
                !self.code[at..].starts_with("crate::{"),
                "{:?}: one use a module, which this test can read",
                self.module
            );
            tree(&self.code[at + "crate::".len()..], &[], &mut named);
        }
        named
    }

    /// The same, and what it names by `super::`.
    fn names_all(&self) -> Vec<Vec<String>> {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut named = self.names();
        for (at, _) in self.code.match_indices("super::").filter(|(at, _)| !self.code[..*at].ends_with(is_part)) {
            let mut rest = &self.code[at..];
            let mut above = self.module.as_slice();
            while let Some(next) = rest.strip_prefix("super::") {
                (rest, above) = (next, &above[..above.len().saturating_sub(1)]);
            }
            tree(rest, above, &mut named);
        }
        named
    }
}

/// Reads `a::b`, `a::{b, c::d}`: the paths that a `use` names, one for each leaf.
fn tree<'c>(code: &'c str, above: &[String], named: &mut Vec<Vec<String>>) -> &'c str {
    if let Some(mut rest) = code.strip_prefix('{') {
        loop {
            rest = tree(rest.trim_start(), above, named).trim_start();
            match rest.strip_prefix(',') {
                Some(more) if !more.trim_start().starts_with('}') => rest = more,
                more => return more.unwrap_or(rest).trim_start().strip_prefix('}').unwrap_or_default(),
            }
        }
    }
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(code.len());
    let (name, rest) = code.split_at(end);
    let path = [above, &[name.to_owned()]].concat();
    if let Some(below) = rest.strip_prefix("::") {
        return tree(below, &path, named);
    }
    named.push(path);
    rest
}

#[test]
fn every_use_of_a_module_is_seen() {
    let code = "use crate::rules::{Rule, node::{drain_held, termination_stuck::refused}};\nfn f() { crate::case::duration(x) }\nuse mycrate::lint;".to_owned();
    let named = Source { module: Vec::new(), code }.names();
    let named: Vec<String> = named.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        named,
        ["rules::Rule", "rules::node::drain_held", "rules::node::termination_stuck::refused", "case::duration"]
    );
}

#[test]
fn no_module_of_the_engine_knows_one_above_it() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let mut upward = Vec::new();
    let mut checked = BTreeSet::new();
    for source in engine() {
        let Some(own) = layer(&source.module[0]) else { continue };
        checked.insert(own);
        let above = source.names().into_iter().filter(|path| layer(&path[0]).is_some_and(|other| other > own));
        upward.extend(above.map(|path| format!("{} names {}", source.module.join("::"), path.join("::"))));
    }
    assert_eq!(checked.len(), LAYERS.len());
    assert!(upward.is_empty(), "{upward:#?}");
}

#[test]
fn a_rule_knows_no_other_rule() {
    let mut asked = Vec::new();
    for source in engine() {
        let [rules, _, _] = source.module.as_slice() else { continue };
        if rules != "rules" {
            continue;
        }
        // `rules` itself has only types that a rule may name, and what nearly every rule uses.
        let may = |name: &str| name.starts_with(char::is_uppercase) || name == "prelude";
        let others = source.names().into_iter().filter(|path| path[0] == "rules" && !may(&path[1]));
        asked.extend(others.map(|path| format!("{} names {}", source.module.join("::"), path.join("::"))));
        assert!(!source.code.contains("super::"), "{:?}: say crate::, which this test can read", source.module);
    }
    assert!(asked.is_empty(), "{asked:#?}");
}

#[test]
fn the_modules_of_a_room_need_each_other_in_no_circle() {
    let roots = ["crates/readers/src", "crates/logs/src", "crates/engine/src", "crates/aws/src", "src"];
    for (root, sources) in roots.map(|root| (root, sources(root))) {
        let is_root = |source: &&Source| !matches!(&*source.module[0], "lib" | "main");
        let modules: BTreeSet<&[String]> = sources.iter().filter(is_root).map(|source| &*source.module).collect();
        let rooms: BTreeSet<&[String]> = modules.iter().map(|module| &module[..module.len() - 1]).collect();
        for room in rooms {
            // A module needs whatever the modules below it need.
            let names: Vec<(&Source, Vec<Vec<String>>)> = sources
                .iter()
                .filter(|source| source.module.len() > room.len() && source.module.starts_with(room))
                .filter(|source| modules.contains(&source.module[..=room.len()]))
                .map(|source| (source, source.names_all()))
                .collect();
            let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for (source, named) in &names {
                let own = &*source.module[room.len()];
                let others = named
                    .iter()
                    .filter(|path| path.len() > room.len() && path.starts_with(room))
                    .filter(|path| path[room.len()] != own && modules.contains(&path[..=room.len()]))
                    .map(|path| &*path[room.len()]);
                needs.entry(own).or_default().extend(others);
            }
            while let Some(free) = needs.iter().find(|(_, needed)| needed.is_empty()).map(|(name, _)| *name) {
                needs.remove(free);
                for needed in needs.values_mut() {
                    needed.remove(free);
                }
            }
            assert!(needs.is_empty(), "{root}/{}: these need each other: {needs:#?}", room.join("/"));
        }
    }
}

#[test]
fn a_circle_between_neighbors_is_seen() {
    let code = "use super::{b, c::D};\nuse super::super::e;".to_owned();
    let module = ["room", "part", "a"].map(str::to_owned).to_vec();
    let named: Vec<String> = Source { module, code }.names_all().iter().map(|path| path.join("::")).collect();
    assert_eq!(named, ["room::part::b", "room::part::c::D", "room::e"]);
}
