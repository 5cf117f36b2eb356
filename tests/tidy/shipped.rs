//! The program that is shipped is the one that is tested: `cargo build` leaves out what only the tests depend on, and
//! with it every feature of a crate that only they switch on.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The crates on these edges of the program's tree, each with the features that are on.
fn features(edges: &str) -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--locked",
            "--offline",
            "--package=nodewhy",
            "--prefix=none",
            "--format={p}|{f}",
            "--edges",
            edges,
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).expect("cargo prints UTF-8").lines() {
        let (name, on) = line.split_once('|').expect("the format has it");
        let on = on.trim_end_matches(" (*)").split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        features.entry(name.to_owned()).or_default().extend(on);
    }
    features
}

#[test]
fn the_tests_switch_on_no_feature_of_what_is_shipped() {
    let (shipped, tested) = (features("no-dev"), features("normal,build,dev"));
    let mut only_tested: BTreeSet<String> = BTreeSet::new();
    for (name, on) in &shipped {
        let crate_name = name.split(' ').next().unwrap_or_default();
        only_tested.extend(tested[name].difference(on).map(|feature| format!("{crate_name}/{feature}")));
    }
    // The clock of the tests; and what other crates than ours ask of crates that we do not use ourselves.
    let known = ["fastrand/default", "getrandom/std", "getrandom/sys_rng", "rustix/fs", "tokio/test-util"];
    assert_eq!(only_tested.iter().map(String::as_str).collect::<Vec<_>>(), known);
    assert!(shipped.len() > 100 && tested.len() > shipped.len(), "{} and {}", shipped.len(), tested.len());
}
