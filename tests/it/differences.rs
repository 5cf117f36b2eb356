//! Cases that are written as the difference from templates.

use benchmark::case::{Case, Truth};
use benchmark::difference::shorten::shorten;
use benchmark::difference::{self, Templates};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use testkit::corpus::case_folders;

/// The text of each `cluster.diff.yaml`.
fn differences() -> Vec<(PathBuf, String)> {
    let paths = case_folders().into_iter().map(|folder| folder.join("cluster.diff.yaml"));
    paths.filter(|path| path.exists()).map(|path| (path.clone(), fs::read_to_string(path).expect("a case"))).collect()
}

/// The texts of an object, with the names of their fields.
fn texts<'a>(name: &'a str, value: &'a Value, all: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => all.push((name, text)),
        Value::Array(items) => items.iter().for_each(|item| texts(name, item, all)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| texts(name, field, all)),
        _ => {}
    }
}

#[test]
fn a_case_has_one_dump() {
    for folder in case_folders() {
        let forms = ["cluster.yaml", "cluster.diff.yaml"].map(|name| folder.join(name).exists());
        assert_eq!(forms.iter().filter(|exists| **exists).count(), 1, "{}", folder.display());
    }
}

#[test]
fn each_difference_expands_and_leaves_no_place_of_a_template() {
    for (path, text) in differences() {
        let objects = difference::expand(&text, Templates::of_corpus());
        let objects = objects.unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert!(!objects.is_empty(), "{}", path.display());
        for object in &objects {
            let mut all = Vec::new();
            texts("", object, &mut all);
            for (name, text) in all {
                // A script in a whole object may have places of its own.
                let is_script = text.contains(['\n', ' ', '"']);
                assert!(is_script || !text.contains("${"), "{}: {name}: {text}", path.display());
            }
        }
    }
}

#[test]
fn every_template_is_used() {
    let used: BTreeSet<String> = differences()
        .iter()
        .flat_map(|(path, text)| {
            difference::templates_used(text).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
        })
        .collect();
    let unused: Vec<String> =
        Templates::of_corpus().names().expect("names").into_iter().filter(|name| !used.contains(name)).collect();
    assert!(unused.is_empty(), "no case uses {unused:?}");
}

const POD: &str = r#"
defaults:
  phase: Running
  started: 3
object:
  apiVersion: v1
  kind: Pod
  metadata:
    name: ${name}
    namespace: kube-system
    uid: ${uid}
    creationTimestamp: ${created}
    ownerReferences:
    - {kind: DaemonSet, name: aws-node, uid: "${uid}"}
  spec:
    nodeName: ${node}
    dnsPolicy: ClusterFirst
    containers:
    - name: aws-node
      args: ["--host=${node}"]
  status:
    phase: ${phase}
    startTime: ${created+1}
    containerStatuses:
    - {name: aws-node, ready: true, state: {running: {startedAt: "${created+started}"}}}
"#;

/// A folder with the one template `pod/agent`.
fn templates(folder: &Path) -> Templates {
    fs::create_dir_all(folder.join("pod")).expect("a folder");
    fs::write(folder.join("pod/agent.yaml"), POD).expect("a file");
    Templates::new(folder)
}

#[test]
fn an_entry_is_its_template_with_parameters_drops_and_sets() {
    let folder = tempfile::tempdir().expect("a folder");
    let templates = templates(folder.path());
    let text = "
shapes:
  agent: {like: pod/agent, node: a}
objects:
- {like: agent, name: one, created: 2026-01-15T23:59:58Z}
- {like: agent, name: two, created: 2026-01-15T12:00:00Z, node: b, started: 2026-01-16T00:00:00Z, drop: [/spec/dnsPolicy],
   set: {/spec/containers/1: {name: x}, /metadata/labels: {a/b: '1'}}}
- {kind: DaemonSet, metadata: {name: aws-node, namespace: kube-system, uid: own}}
";
    let objects = difference::expand(text, &templates).expect("objects");
    let [one, two, _] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!(one["spec"]["containers"][0]["args"], json!(["--host=a"]));
    assert_eq!(one["status"]["startTime"], "2026-01-15T23:59:59Z");
    let started = |pod: &Value| pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"].clone();
    assert_eq!(started(one), "2026-01-16T00:00:01Z");
    assert_eq!(started(two), "2026-01-16T00:00:00Z");
    assert_eq!(one["metadata"]["ownerReferences"][0]["uid"], "own", "the owner has its own");
    assert_ne!(one["metadata"]["uid"], two["metadata"]["uid"]);
    assert_eq!(
        two["spec"],
        json!({"nodeName": "b", "containers": [{"name": "aws-node", "args": ["--host=b"]}, {"name": "x"}]})
    );
    assert_eq!(two["metadata"]["labels"], json!({"a/b": "1"}));
}

#[test]
fn what_a_template_does_not_know_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let templates = templates(folder.path());
    let entry = "like: pod/agent, name: x, node: a, created: 2026-01-15T12:00:00Z";
    for (entry, why) in [
        (entry.replace("pod/agent", "pod/nobody"), "template pod/nobody"),
        (format!("{entry}, color: red"), "no parameter color"),
        (entry.replace("node: a, ", ""), "the parameter node is missing"),
        (entry.replace("2026-01-15T12:00:00Z", "today"), "is no time"),
        (format!("{entry}, drop: [/spec/tolerations]"), "the template has no /spec/tolerations"),
        (format!("{entry}, set: {{/spec/containers/2: a}}"), "behind the end"),
    ] {
        let error = difference::expand(&format!("objects:\n- {{{entry}}}\n"), &templates).expect_err(&entry);
        assert!(error.contains(why), "{entry}: {error}");
    }
}

/// A dump of healthy agents, on nodes of which one is said to be sick.
#[test]
fn a_dump_is_shortened_and_expands_to_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let templates = templates(folder.path());
    let daemon_set = "0eaf26b4-70f2-5d4c-9f34-1e2c5ea1b0a1";
    let pod = |number: usize| {
        let second = 10 + number;
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("aws-node-{number}"), "namespace": "kube-system",
                "uid": format!("{number:08}-70f2-5d4c-9f34-1e2c5ea1b0a1"),
                "creationTimestamp": format!("2026-01-15T12:00:{second}Z"),
                "ownerReferences": [{"kind": "DaemonSet", "name": "aws-node", "uid": daemon_set}],
            },
            "spec": {
                "nodeName": format!("node-{number}"), "dnsPolicy": "ClusterFirst",
                "containers": [{"name": "aws-node", "args": [format!("--host=node-{number}")]}],
            },
            "status": {
                "phase": "Running", "startTime": format!("2026-01-15T12:00:{}Z", second + 1),
                "containerStatuses": [{"name": "aws-node", "ready": number != 3,
                    "state": {"running": {"startedAt": format!("2026-01-15T12:00:{}Z", second + 3)}}}],
            },
        })
    };
    let pods: Vec<Value> = (0..9).map(pod).collect();
    let dump = serde_json::to_string_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": pods})).expect("JSON");
    let truth: Truth = serde_json::from_value(json!({
        "now": "2026-01-15T13:00:00Z", "sick": ["Node/node-3"], "object_to_fix": "none", "observable": "none",
    }))
    .expect("a truth");
    let case = Case { name: "1-x".to_owned(), folder: folder.path().to_owned(), truth };
    let text = shorten(&case, &dump, &templates).expect("it is shortened");
    assert!(
        text.contains("- {created: 2026-01-15T12:00:11Z, like: pod/agent, name: aws-node-1, node: node-1}"),
        "{text}"
    );
    assert!(text.contains("  kind: Pod\n"), "the pod that is not ready on the sick node stays whole: {text}");
    let again = difference::expand(&text, &templates).expect("objects");
    assert_eq!(again.len(), pods.len());
    for (before, after) in pods.iter().zip(&again) {
        assert_eq!((&before["spec"], &before["status"]), (&after["spec"], &after["status"]));
    }
    let owner = |pod: &Value| pod["metadata"]["ownerReferences"][0]["uid"].clone();
    assert!(again.iter().all(|pod| owner(pod) == owner(&again[0])), "they have one owner");

    let refused = shorten(&case, &json!({"kind": "Node", "metadata": {"name": "a"}}).to_string(), &templates);
    assert!(refused.expect_err("nothing is saved").contains("30 %"));
}
