//! A live cluster: filled, read raw, and by others.

use crate::measure::{Row, timed, whole};
use crate::{fate, operator, peers};
use futures::{StreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;
use testkit::control_plane::recipes::ec2_nodepool;
use testkit::control_plane::{ControlPlane, binaries};
use testkit::objects::fleet::{Fate, claim, node};

/// Requests that make the cluster, at once.
pub const AT_ONCE: usize = 32;
/// Beyond it kubectl and popeye would need more than most machines have.
pub const PEERS_UP_TO: usize = 20_000;

pub fn cluster(n: usize) -> Vec<Row> {
    // What the API server holds of 40,000 Nodes and NodeClaims takes 9 GB. Without its cache it reads them from etcd each time.
    let flags: &[&str] = if n <= PEERS_UP_TO { &[] } else { &["--watch-cache=false"] };
    let control_plane = ControlPlane::start_with(flags);
    control_plane.karpenter_crds("1.14.1");
    control_plane.ec2nodeclass_crd();
    let rights = control_plane.install("manifests");
    ec2_nodepool(&control_plane);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let begun = Instant::now();
    let client = runtime.block_on(async {
        let client = control_plane.client().await;
        fill(&client, n).await;
        client
    });
    eprintln!("made {n} Nodes and NodeClaims in {:.0} s", begun.elapsed().as_secs_f64());

    let mut rows = Vec::new();
    // The API server has served each list once when it is measured.
    for round in 0..2 {
        let mut raw = Vec::new();
        timed("the same LISTs, read raw one after the other", &mut raw, || {
            for path in ["/api/v1/nodes", "/apis/karpenter.sh/v1/nodeclaims"] {
                assert!(runtime.block_on(read(&client, path, n)) > n * 1_000);
            }
        });
        if round == 1 {
            rows.extend(raw);
        }
    }
    let kubeconfig = control_plane.kubeconfig();
    let mut diagnose = Command::new(env!("CARGO_BIN_EXE_nodewhy"));
    diagnose.arg("diagnose").env("KUBECONFIG", &kubeconfig);
    rows.push(whole("nodewhy diagnose, live", &[0], &mut diagnose));
    if n <= PEERS_UP_TO {
        let mut kubectl = Command::new(binaries::control_plane("kubectl"));
        kubectl.args(["get", "nodes", "-o", "name"]).env("KUBECONFIG", &kubeconfig);
        rows.push(whole("kubectl get nodes -o name", &[0], &mut kubectl));
        rows.push(peers::popeye(&kubeconfig));
        rows.push(peers::kube_state_metrics(&control_plane, n).0);
    }
    rows.extend(operator::rows(&control_plane, &rights, &runtime, &client, n));
    rows
}

/// Reads a list and gives its length. Without its cache the API server does not come to the end of a long one within its minute.
async fn read(client: &kube::Client, path: &str, n: usize) -> usize {
    let limit = if n <= PEERS_UP_TO { 0 } else { 10_000 };
    let (mut length, mut next) = (0, Some(String::new()));
    while let Some(token) = next {
        let request = http::Request::get(format!("{path}?limit={limit}&continue={token}")).body(Vec::new()).expect("a path");
        let text = client.request_text(request).await.expect("an answer");
        length += text.len();
        // The token stands in the list's metadata: before all items, or after them where a CustomResourceDefinition describes them.
        let (first, last) = text
            .split_once(r#""items":"#)
            .map_or(("", ""), |(before, items)| (before, items.rsplit_once(']').map_or("", |(_, after)| after)));
        let token = [first, last].into_iter().find_map(|metadata| metadata.split_once(r#""continue":""#));
        next = token.and_then(|(_, rest)| Some(rest.split_once('"')?.0.to_owned())).filter(|token| !token.is_empty());
    }
    length
}

async fn fill(client: &kube::Client, n: usize) {
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
fn object(mut value: Value) -> DynamicObject {
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
