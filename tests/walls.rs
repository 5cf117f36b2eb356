//! The crates that judge cannot do IO: their dependencies are few, and none of them reaches a file, a socket or a runtime.
//! What the standard library offers of it, clippy forbids there (`clippy.toml` of each crate).

use std::collections::BTreeSet;
use std::process::Command;

/// Runtimes, clients, servers, terminals: with one of these in its tree a crate could do IO.
const IO: [&str; 21] = [
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
    "tokio",
    "tower",
    "tracing-subscriber",
];

/// What the pure crates may use: a new dependency is argued for here.
const READERS: [&str; 4] = ["serde", "serde-saphyr", "serde_json", "toml"];
const ENGINE: [&str; 12] = [
    "arcstr",
    "chrono",
    "json-patch",
    "k8s-openapi",
    "kube-core",
    "kube-derive",
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
        .args(["tree", "--locked", "--offline", "--edges=normal", "--prefix=none", "--format={p}", "--package", package, &depth])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    listed.lines().filter_map(|line| line.split(' ').next()).filter(|name| *name != package).map(str::to_owned).collect()
}

#[test]
fn the_crates_that_judge_depend_on_nothing_that_does_io() {
    for (package, permitted) in [("nodewhy-readers", &READERS[..]), ("nodewhy-engine", &ENGINE[..])] {
        let direct = dependencies(package, Some(1));
        let unargued: Vec<_> = direct.iter().filter(|name| !permitted.contains(&name.as_str())).collect();
        assert!(unargued.is_empty(), "{package} gained {unargued:?}: argue for them in tests/walls.rs, or do without");
        let all = dependencies(package, None);
        let doing_io: Vec<_> = IO.iter().filter(|name| all.contains(**name)).collect();
        assert!(doing_io.is_empty(), "{package} could do IO by {doing_io:?}");
    }
}

#[test]
fn the_readers_know_nothing_of_kubernetes() {
    let all = dependencies("nodewhy-readers", None);
    let kubernetes: Vec<_> = all.iter().filter(|name| name.starts_with("k8s-") || name.starts_with("kube")).collect();
    assert!(kubernetes.is_empty(), "{kubernetes:?}");
}

#[test]
fn the_list_of_what_does_io_is_not_empty_talk() {
    let binary = dependencies("nodewhy", None);
    assert!(["tokio", "hyper", "kube-client", "clap"].iter().all(|name| binary.contains(*name)), "{binary:?}");
}
