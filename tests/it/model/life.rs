//! What can happen to the machines of a small cluster, and to what they depend on.

use crate::model::cluster::{Cluster, name_of, stamp};
use chrono::{DateTime, TimeDelta, Utc};
use engine::objects::input::Input;
use serde_json::{Value, json};

/// So many machines live side by side; a name is given again.
const MACHINES: u8 = 5;

fn claim_name(n: u8) -> String {
    format!("general-{n:05}")
}

fn node_name(n: u8) -> String {
    format!("ip-10-0-0-{n}.eu-west-1.compute.internal")
}

fn set_condition(object: &mut Value, type_: &str, status: &str, reason: &str, at: DateTime<Utc>) {
    let condition =
        json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": stamp(at)});
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let conditions = object["status"]["conditions"].as_array_mut().expect("just made");
    match conditions.iter_mut().find(|c| c["type"] == type_) {
        Some(same) if same["status"] == status && same["reason"] == reason => {}
        Some(other) => *other = condition,
        None => conditions.push(condition),
    }
}

fn taint(key: &str, effect: &str) -> Value {
    json!({"key": key, "effect": effect})
}

fn toggle_taint(node: &mut Value, key: &str, effect: &str) {
    if !node["spec"]["taints"].is_array() {
        node["spec"]["taints"] = json!([]);
    }
    let taints = node["spec"]["taints"].as_array_mut().expect("just made");
    match taints.iter().position(|t| t["key"] == key) {
        Some(at) => drop(taints.remove(at)),
        None => taints.push(taint(key, effect)),
    }
}

/// Something happens.
pub fn happen(cluster: &mut Cluster, now: DateTime<Utc>) {
    let n = cluster.rng.u8(..MACHINES);
    let (claim, node) = (claim_name(n), node_name(n));
    let id = |cluster: &Cluster| {
        cluster.get(Input::NodeClaims, &claim).map(|c| c["status"]["providerID"].clone()).unwrap_or_default()
    };
    let what = cluster.rng.u8(..24);
    let mut on_claim = |type_: &str, status: &str, reason: &str| {
        cluster.change(Input::NodeClaims, &claim, |object| set_condition(object, type_, status, reason, now));
    };
    match what {
        0..4 => create(cluster, &claim, now),
        4..6 => {
            let id = json!(format!("aws:///eu-west-1a/i-{:017x}", cluster.rng.u32(..)));
            cluster.change(Input::NodeClaims, &claim, |object| {
                if object["status"]["providerID"].is_null() {
                    object["status"]["providerID"] = id;
                    object["status"]["imageID"] = json!("ami-0aaa0000000000001");
                }
                set_condition(object, "Launched", "True", "Launched", now);
            });
        }
        6 => on_claim("Launched", "Unknown", "InsufficientCapacityError"),
        7 => on_claim("Registered", "False", "UnregisteredTaintNotFound"),
        8..10 => on_claim("Registered", "True", "Registered"),
        10..12 => on_claim("Initialized", "True", "Initialized"),
        12..14 => {
            let id = id(cluster);
            join(cluster, &node, &id, now);
        }
        14..16 => {
            cluster.change(Input::Nodes, &node, |object| set_condition(object, "Ready", "True", "KubeletReady", now));
        }
        16 => cluster
            .change(Input::Nodes, &node, |object| set_condition(object, "Ready", "False", "KubeletNotReady", now)),
        17 => cluster.change(Input::Nodes, &node, |object| {
            toggle_taint(object, "node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule");
        }),
        18 => {
            cluster
                .change(Input::Nodes, &node, |object| toggle_taint(object, "karpenter.sh/unregistered", "NoExecute"));
        }
        19 => cluster.delete(Input::Nodes, &node),
        20 => cluster
            .change(Input::NodeClaims, &claim, |object| object["metadata"]["deletionTimestamp"] = json!(stamp(now))),
        21 => {
            cluster.delete(Input::NodeClaims, &claim);
            cluster.delete(Input::Nodes, &node);
        }
        22 => aws_auth(cluster),
        _ => class(cluster, now),
    }
}

fn create(cluster: &mut Cluster, name: &str, now: DateTime<Utc>) {
    if cluster.get(Input::NodeClaims, name).is_some() {
        return;
    }
    let uid = cluster.uid();
    cluster.put(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": uid, "creationTimestamp": stamp(now), "labels": {"karpenter.sh/nodepool": "general"}},
        "spec": {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}},
        "status": {"conditions": []},
    }));
}

fn join(cluster: &mut Cluster, name: &str, provider_id: &Value, now: DateTime<Utc>) {
    if cluster.get(Input::Nodes, name).is_some() || provider_id.is_null() {
        return;
    }
    let uid = cluster.uid();
    let id = if cluster.rng.u8(..6) == 0 { json!("") } else { provider_id.clone() };
    cluster.put(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "uid": uid, "creationTimestamp": stamp(now), "labels": {}},
        "spec": {"providerID": id, "taints": [taint("karpenter.sh/unregistered", "NoExecute")]},
        "status": {"conditions": []},
    }));
}

const MAPPED: &str = "- rolearn: arn:aws:iam::111122223333:role/KarpenterNodeRole-shop\n  username: \
                      system:node:{{EC2PrivateDNSName}}\n  groups: [system:bootstrappers, system:nodes]\n";

fn aws_auth(cluster: &mut Cluster) {
    let texts = [
        MAPPED,
        "- rolearn: arn:aws:iam::111122223333:role/other\n  username: system:node:{{EC2PrivateDNSName}}\n  groups: \
         [system:bootstrappers, system:nodes]\n",
        "- rolearn: [broken\n",
    ];
    let text = texts[cluster.rng.usize(..texts.len())];
    cluster.change(Input::AwsAuth, "aws-auth", |object| object["data"]["mapRoles"] = json!(text));
}

fn class(cluster: &mut Cluster, now: DateTime<Utc>) {
    let user_data = ["", "#!/bin/bash\nexit 1\n", "not a script"];
    let (ready, text) = (cluster.rng.bool(), user_data[cluster.rng.usize(..user_data.len())]);
    cluster.change(Input::NodeClasses, "default", |object| {
        object["spec"]["userData"] = json!(text);
        set_condition(
            object,
            "Ready",
            if ready { "True" } else { "False" },
            if ready { "Ready" } else { "SubnetsNotFound" },
            now,
        );
    });
}

/// Somebody repairs whatever may hold a machine up.
pub fn repair(cluster: &mut Cluster, claim: &str, now: DateTime<Utc>) {
    let Some(machine) = cluster.get(Input::NodeClaims, claim).cloned() else { return };
    let id = &machine["status"]["providerID"];
    cluster.change(Input::AwsAuth, "aws-auth", |object| object["data"]["mapRoles"] = json!(MAPPED));
    cluster.change(Input::NodeClasses, "default", |object| {
        object["spec"]["userData"] = json!("");
        set_condition(object, "Ready", "True", "Ready", now);
    });
    for node in (0..MACHINES).map(node_name) {
        if cluster.get(Input::Nodes, &node).is_some_and(|node| node["spec"]["providerID"] == *id) {
            cluster.change(Input::Nodes, &node, |object| {
                object["spec"]["taints"] = json!([]);
                set_condition(object, "Ready", "True", "KubeletReady", now);
            });
        }
    }
}

/// A moment later Karpenter sees it.
pub fn pass(cluster: &mut Cluster, claim: &str, now: DateTime<Utc>) {
    let Some(machine) = cluster.get(Input::NodeClaims, claim).cloned() else { return };
    let free = (0..MACHINES).map(node_name).find(|node| cluster.get(Input::Nodes, node).is_none());
    let id = &machine["status"]["providerID"];
    let mut nodes = (0..MACHINES).map(node_name).filter_map(|node| cluster.get(Input::Nodes, &node));
    if !nodes.any(|node| node["spec"]["providerID"] == *id)
        && let Some(free) = free
    {
        join(cluster, &free, id, now);
        cluster.change(Input::Nodes, &free, |object| object["spec"]["providerID"] = id.clone());
    }
    repair(cluster, claim, now);
    cluster.change(Input::NodeClaims, claim, |object| {
        for passed in ["Launched", "Registered", "Initialized"] {
            set_condition(object, passed, "True", passed, now);
        }
    });
}

/// The cluster before anything happens: without the Pods, which are listed, and with uids.
pub fn before(objects: Vec<Value>) -> Vec<Value> {
    let named = |mut object: Value| {
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("first-{}", name_of(&object)));
        }
        object
    };
    objects.into_iter().map(named).collect()
}

/// Longer than any stage's patience.
pub const PATIENCE: TimeDelta = TimeDelta::minutes(80);
