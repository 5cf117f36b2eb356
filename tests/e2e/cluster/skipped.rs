//! A NodePool whose requirements no instance type meets: the real Karpenter skips it, and says so in one Event only.

use chrono::{SecondsFormat, TimeDelta, Utc};
use serde_json::{Value, json};
use std::process::Command;
use testkit::control_plane::recipes::{SOON, nodepool, wait_until};
use testkit::control_plane::{ControlPlane, NEWEST_KARPENTER};

#[test]
fn a_nodepool_that_no_instance_type_meets_is_named_by_the_event_of_karpenter() {
    let control_plane = ControlPlane::start();
    let _karpenter = control_plane.karpenter(NEWEST_KARPENTER);
    nodepool(&control_plane, "general");
    nodepool(&control_plane, "no-type");
    let none = json!([{ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["no-such-type-of-the-region"] }]);
    let patch = json!({ "spec": { "template": { "spec": { "requirements": none } } } }).to_string();
    control_plane.kubectl(&["patch", "nodepool", "no-type", "--type=merge", "--patch", &patch]);
    control_plane.apply(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "waits", "namespace": "default" },
        "spec": {
            "nodeSelector": { "karpenter.sh/nodepool": "no-type" },
            "containers": [{ "name": "main", "image": "none" }],
        },
    }));
    // As the scheduler writes it, which does not run here.
    let unschedulable =
        r#"--patch={"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}"#;
    control_plane.kubectl(&["patch", "pod", "waits", "--subresource=status", unschedulable]);
    wait_until(SOON, || {
        let events = control_plane.kubectl(&["get", "events", "--all-namespaces", "--output=json"]);
        events.contains("NoCompatibleInstanceTypes").then_some(())
    });

    let kinds = "nodepools,kwoknodeclasses,nodeclaims,nodes,pods,events";
    let dump = control_plane.kubectl(&["get", kinds, "--all-namespaces", "--output=json"]);
    let mut dump: Value = serde_json::from_str(&dump).expect("JSON");
    assert_eq!(diagnosed(&dump), json!([]), "EC2 may lack capacity for a few minutes, so it is too early");
    // The same, if the pod had waited for 20 minutes.
    let earlier = (Utc::now() - TimeDelta::minutes(20)).to_rfc3339_opts(SecondsFormat::Secs, true);
    for object in dump["items"].as_array_mut().expect("a list") {
        object["metadata"]["creationTimestamp"] = json!(earlier);
        if object["kind"] == "Event" {
            object["firstTimestamp"] = json!(earlier);
        }
    }
    let verdict = &diagnosed(&dump)[0];
    assert_eq!(verdict["spec"]["subject"]["name"], "no-type", "{verdict:#}");
    assert_eq!(verdict["status"]["cause"], "NoInstanceTypeLeft", "{verdict:#}");
    assert_eq!(verdict["status"]["blame"]["field"], "spec.template.spec.requirements");
}

/// What nodewhy says of the dump.
fn diagnosed(dump: &Value) -> Value {
    let file = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    std::fs::write(file.path(), dump.to_string()).expect("written");
    let mut nodewhy = Command::new(testkit::nodewhy());
    let output = nodewhy.args(["diagnose", "--output=json", "--filename"]).arg(file.path()).output();
    let mut said: Value = serde_json::from_slice(&output.expect("nodewhy starts").stdout).expect("JSON");
    said["items"].take()
}
