//! `cargo xtask new-cause` on a copy of the tree. What it writes is an honest beginning: a rule that compiles and says
//! nothing, a page, and examples that fail until they are filled in.

/// The skeleton of a rule, compiled as it is.
#[path = "../../crates/xtask/skeleton/src/rules/category/new_cause.rs"]
mod skeleton;

use crate::case;
use testkit::objects;

use case::Case;
use case::judging::Judging;
use case::stage::Thresholds;
use engine::diagnose::diagnose;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use xtask::new_cause;

const NOW: &str = "2026-01-15T12:00:00Z";

/// A claim that has waited for its Node for ten minutes.
const STUCK: &str = r#"
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: stuck, uid: c1, creationTimestamp: "2026-01-15T11:50:00Z", labels: {karpenter.sh/nodepool: general}}
spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
status:
  providerID: aws:///eu-west-1a/i-0a0000000000000b1
  conditions: [{type: Launched, status: "True", lastTransitionTime: "2026-01-15T11:50:05Z"}]
"#;

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).expect("a folder");
        for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).expect("a copy");
    }
}

/// What `new-cause` reads and writes.
fn tree() -> TempDir {
    let (tree, root) = (TempDir::new().expect("a folder"), Path::new(env!("CARGO_MANIFEST_DIR")));
    for path in ["crates/engine/src", "docs/causes", "tests/causes"] {
        copy(&root.join(path), &tree.path().join(path));
    }
    tree
}

fn text(tree: &TempDir, path: &str) -> String {
    fs::read_to_string(tree.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files of a folder, with what is in them.
fn contents(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for path in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            all.extend(contents(&path));
        } else {
            all.push((path.clone(), fs::read_to_string(&path).expect("text")));
        }
    }
    all.sort();
    all
}

#[test]
fn a_new_cause_has_a_page_a_rule_and_its_lines() {
    let tree = tree();
    let before = contents(tree.path()).len();
    new_cause::write(tree.path(), "KubeletNapsAtNoon", "node").expect("a cause");
    assert_eq!(contents(tree.path()).len(), before + 3);
    assert!(text(&tree, "docs/causes/KubeletNapsAtNoon.md").starts_with("# KubeletNapsAtNoon\n\n> "));
    assert!(text(&tree, "tests/causes/KubeletNapsAtNoon.md").starts_with("# Examples of KubeletNapsAtNoon\n\n## "));
    let rule = text(&tree, "crates/engine/src/rules/node/kubelet_naps_at_noon.rs");
    assert!(rule.contains("cause: KubeletNapsAtNoon,"));
    let modules = text(&tree, "crates/engine/src/rules/node.rs");
    let modules: Vec<&str> = modules.lines().filter(|line| line.starts_with("pub mod ")).collect();
    assert!(modules.contains(&"pub mod kubelet_naps_at_noon;") && modules.is_sorted(), "{modules:?}");
    let list = text(&tree, "crates/engine/src/rules.rs");
    let ours: Vec<_> = list.lines().filter(|line| line.starts_with("    &node::")).collect();
    assert_eq!(ours.last(), Some(&"    &node::kubelet_naps_at_noon::RULE,"));
}

#[test]
fn files_are_named_after_causes_and_modules_stand_in_the_order_that_rustfmt_wants() {
    let tree = tree();
    for (name, module) in [
        ("AardvarkSqueezesNode", "aardvark_squeezes_node"),
        ("NodeWithoutAnyProviderID", "node_without_any_provider_id"),
        ("DNSFails2Late", "dns_fails2_late"),
        ("ZebraOutrunsKubelet", "zebra_outruns_kubelet"),
    ] {
        new_cause::write(tree.path(), name, "node").expect(name);
        assert!(text(&tree, &format!("crates/engine/src/rules/node/{module}.rs")).contains(name));
    }
    let category = text(&tree, "crates/engine/src/rules/node.rs");
    let modules: Vec<_> = category.lines().filter(|line| line.starts_with("pub mod ")).collect();
    assert!(modules.is_sorted(), "{modules:?}");
    assert!(modules[0].contains("aardvark") && category.ends_with("pub mod zebra_outruns_kubelet;\n"), "{category}");
}

#[test]
fn what_exists_and_what_is_no_name_is_refused_and_nothing_is_written() {
    let tree = tree();
    let before = contents(tree.path());
    for (name, category, why) in [
        ("KubeletStopped", "node", "KubeletStopped exists"),
        ("KubeletStopped", "access", "KubeletStopped exists"),
        ("kubeletStopped", "node", "CamelCase"),
        ("KUBELETStopped", "node", "exists"),
        ("../../EscapesTheFolder", "node", "CamelCase"),
        ("Loop", "node", "one word"),
        ("", "node", "CamelCase"),
        ("Kubelet Naps", "node", "CamelCase"),
        ("ÄpfelFaulen", "node", "CamelCase"),
        (&"Ab".repeat(32), "node", "at most 63"),
        ("KubeletNapsAtNoon", "shared", "no category"),
        ("KubeletNapsAtNoon", "../node", "no category"),
    ] {
        let refused = new_cause::write(tree.path(), name, category).expect_err(name);
        assert!(refused.contains(why), "{name} in {category}: {refused}");
    }
    assert_eq!(contents(tree.path()), before);
}

#[test]
fn a_rule_that_is_not_filled_in_says_nothing() {
    let (cluster, now) = (objects::cluster(STUCK), NOW.parse().expect("a time"));
    let thresholds = Thresholds::default();
    let cases: Vec<_> = Case::all(Judging::new(&cluster, now, &thresholds)).collect();
    assert!(!cases.is_empty());
    assert!(cases.iter().all(|case| (skeleton::RULE.check)(case).is_none()));
}

/// `tests/it/pages.rs` names the file, the line, the example's title and what is not found: that is what to fill in.
#[test]
fn examples_that_are_not_filled_in_fail() {
    let examples = objects::examples_in(include_str!("../../crates/xtask/skeleton/examples/NewCause.md"));
    let names_it = |example: &&objects::Example| {
        example.expect.iter().any(|e| e.get("cause").is_some_and(|c| c == skeleton::RULE.cause))
    };
    assert!(examples.iter().any(|e| names_it(&e)) && examples.iter().any(|e| !names_it(&e)), "a hit and a near miss");
    let now = NOW.parse().expect("a time");
    for example in examples {
        assert!(example.title.contains("TODO: write the"), "{}", example.title);
        assert!(!example.expect.is_empty(), "{} would pass", example.title);
        assert_eq!(
            diagnose(Judging::new(&objects::cluster(&example.objects), now, &Thresholds::default())),
            [],
            "{}",
            example.title
        );
    }
}
