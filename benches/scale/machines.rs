//! The machines of the measured cluster: how they are made, read and made sick.

use crate::fate;
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::objects::fleet::{Fate, claim, node};

/// Requests that make the cluster, at once.
pub const AT_ONCE: usize = 32;
/// Beyond it kubectl and popeye would need more than most machines have.
pub const PEERS_UP_TO: usize = 20_000;

pub fn healthy(n: usize) -> impl Iterator<Item = usize> + Clone {
    (0..n).filter(|n| fate(*n) == Fate::Healthy)
}

pub async fn fill(client: &kube::Client, n: usize) {
    let (nodes, claims) = (nodes(client), claims(client));
    let make = async |n: usize| {
        let made = claim(n, fate(n));
        let status = json!({"status": made["status"]});
        let made = claims.create(&PostParams::default(), &object(made)).await.expect("a NodeClaim");
        if fate(n) == Fate::Healthy {
            nodes.create(&PostParams::default(), &object(node(n))).await.expect("a Node");
        }
        let name = made.metadata.name.unwrap_or_default();
        claims.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.expect("its status");
    };
    stream::iter(0..n).for_each_concurrent(AT_ONCE, make).await;
}

/// What the API server gives itself must not be in a new object.
pub fn object(mut value: Value) -> DynamicObject {
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences"] {
            metadata.remove(field);
        }
    }
    serde_json::from_value(value).expect("an object")
}

/// Karpenter refuses a machine that was healthy. Gives the name of its NodeClaim.
pub async fn refuse(claims: &Api<DynamicObject>, machine: usize) -> String {
    let made = claim(machine, Fate::Healthy);
    let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut conditions = made["status"]["conditions"].clone();
    for condition in conditions.as_array_mut().into_iter().flatten().filter(|c| c["type"] == "Registered") {
        condition["status"] = json!("False");
        condition["reason"] = json!("UnregisteredTaintNotFound");
    }
    let refused = Patch::Merge(json!({"status": {"conditions": conditions}}));
    claims.patch_status(&name, &PatchParams::default(), &refused).await.expect("a NodeClaim");
    name
}

pub fn nodes(client: &kube::Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &of("", "v1", "Node", "nodes"))
}

pub fn claims(client: &kube::Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &of("karpenter.sh", "v1", "NodeClaim", "nodeclaims"))
}

pub fn diagnoses(client: &kube::Client) -> Api<DynamicObject> {
    Api::all_with(client.clone(), &of("nodewhy.dev", "v1alpha1", "NodeDiagnosis", "nodediagnoses"))
}

fn of(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&kube::api::GroupVersionKind::gvk(group, version, kind), plural)
}
