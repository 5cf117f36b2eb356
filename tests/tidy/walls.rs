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
const ENGINE: [&str; 13] = [
    "arcstr",
    "chrono",
    "json-patch",
    "k8s-openapi",
    "kube-core",
    "kube-derive",
    "nodewhy-logs",
    "nodewhy-readers",
    "schemars",
    "serde",
    "serde-saphyr",
    "serde_json",
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
const LAYERS: [&[&str]; 11] = [
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
    &["lint", "triage", "remediation"],
];

/// A source file of the engine: its module path, and its code without comments and tests.
struct Source {
    module: Vec<String>,
    code: String,
}

fn engine() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/engine/src");
    let mut folders = vec![root.clone()];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of the engine") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
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
        // `rules` itself has only types that a rule may name.
        let may = |name: &str| name.starts_with(char::is_uppercase);
        let others = source.names().into_iter().filter(|path| path[0] == "rules" && !may(&path[1]));
        asked.extend(others.map(|path| format!("{} names {}", source.module.join("::"), path.join("::"))));
        assert!(!source.code.contains("super::"), "{:?}: say crate::, which this test can read", source.module);
    }
    assert!(asked.is_empty(), "{asked:#?}");
}

/// The rooms in which the files need each other in one direction only.
const WITHOUT_CIRCLES: [&str; 2] = ["facts", "explain"];

#[test]
fn the_files_of_a_room_need_each_other_in_no_circle() {
    for room in WITHOUT_CIRCLES {
        let files = engine().into_iter().filter(|source| source.module.len() == 2 && source.module[0] == room);
        let mut needs: BTreeMap<String, BTreeSet<String>> = files
            .map(|source| {
                let named = source.names().into_iter().filter(|path| path.len() > 1 && path[0] == room);
                (source.module[1].clone(), named.map(|path| path[1].clone()).collect())
            })
            .collect();
        assert!(needs.values().any(|needed| !needed.is_empty()), "{room}");
        while let Some(free) = needs.iter().find(|(_, needed)| needed.is_empty()).map(|(name, _)| name.clone()) {
            needs.remove(&free);
            for needed in needs.values_mut() {
                needed.remove(&free);
            }
        }
        assert!(needs.is_empty(), "these need each other: {needs:#?}");
    }
}
