//! The cloud controller of AWS, beside an EC2 that refuses, and at Nodes that no instance stands behind.

use crate::real_logs::{assert_complete, judge, rows_in};
use logs::fact::{Reason, Trouble};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use testkit::control_plane::{ControlPlane, Process};
use testkit::moto::moto;
use testkit::patience::Patience;

const NO_METADATA: &str = "error syncing '{node}': failed to get instance metadata for node {}: {error}";
const NO_MODIFIERS: &str = "error syncing '{node}': failed to get node modifiers from cloud provider: {error}";
const INITIALIZED: &str = "Successfully initialized node {node} with cloud provider";

const NOT_HERE: &[(&str, &str)] = &[(
    "error syncing '{node}': failed to get provider ID for node {} at cloudprovider: {error}",
    "a cloud controller up to 1.29 says it",
)];

/// A Node as its kubelet registers it.
fn node(name: &str, instance: Option<&str>, address: Option<&str>) -> Value {
    let provider_id = instance.map(|id| format!("aws:///eu-west-1a/{id}"));
    let annotations = address.map(|address| json!({ "alpha.kubernetes.io/provided-node-ip": address }));
    let taint =
        json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "annotations": annotations },
        "spec": { "providerID": provider_id, "taints": [taint] },
    })
}

/// What it says of a Node, up to the first line that has this row.
fn said_of(controller: &Process, name: &str, says: &str) -> String {
    let patience = Patience::of(Duration::from_mins(1));
    loop {
        let log = controller.log();
        let lines: Vec<&str> = log.lines().filter(|line| line.contains(name)).collect();
        let said = lines.iter().position(|line| rows_in(line).contains(says));
        if said.is_some() || patience.is_over() {
            return lines[..said.map_or(lines.len(), |at| at + 1)].join("\n");
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn what_the_cloud_controller_says_in_trouble_is_known() {
    let moto = moto();
    let control_plane = ControlPlane::start();
    let [refused, gone, unnamed, elsewhere] =
        ["ip-10-0-3-1", "ip-10-0-3-2", "ip-10-0-3-3", "ip-10-0-3-4"].map(|name| format!("{name}.ec2.internal"));
    let ids = ["i-0a0000000000000b1", "i-0a0000000000000b4"];
    for id in ids {
        moto.tell("instance", &json!({ "id": id }));
    }
    moto.tell(
        "fault",
        &json!({
            "kind": "error", "action": "ec2:DescribeInstances", "status": 403, "code": "UnauthorizedOperation",
            "message": "You are not authorized to perform this operation.",
        }),
    );
    control_plane.apply(node(&refused, Some(ids[0]), None));
    let controller = control_plane.cloud_controller(&moto.url(), &control_plane.kubeconfig(), 4);
    let (mut wrong, mut printed) = (Vec::new(), BTreeSet::new());
    let mut tell = |node: &str, says: &str, wanted| {
        let log = said_of(&controller, node, says);
        wrong.extend(judge(node, &log, says, wanted));
        printed.extend(rows_in(&log));
    };
    let fails = |reason| Some((Trouble::CloudControllerFails, reason));
    tell(&refused, NO_METADATA, fails(Some(Reason::AccessDenied)));
    moto.tell("no-faults", &json!({}));
    // It tries again, and takes back what it said.
    tell(&refused, INITIALIZED, None);

    control_plane.apply(node(&gone, Some("i-0a0000000000000b2"), None));
    tell(&gone, NO_METADATA, fails(Some(Reason::NotFound)));
    control_plane.apply(node(&unnamed, None, None));
    tell(&unnamed, NO_METADATA, fails(Some(Reason::NotFound)));
    control_plane.apply(node(&elsewhere, Some(ids[1]), Some("10.9.9.9")));
    tell(&elsewhere, NO_MODIFIERS, fails(None));

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("cloud-controller", &printed, NOT_HERE);
}
