//! An upgrade of the whole cluster: each machine is made anew and deleted, within ten minutes.

use crate::machines::{claims, diagnoses, healthy, nodes, object};
use crate::measure::{OWN, Row, cpu};
use crate::operator::until_verdicts_begin;
use chrono::{SecondsFormat, Utc};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};
use testkit::control_plane::{ControlPlane, Nodewhy};
use testkit::objects::fleet::{Fate, claim, claim_name, node};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

const LASTS: Duration = Duration::from_mins(10);
/// From the launch to the Node, and from there to Ready.
const BOOTS: Duration = Duration::from_secs(35);
const GETS_READY: Duration = Duration::from_secs(15);

pub fn rows(
    control_plane: &ControlPlane,
    rights: &Path,
    runtime: &Runtime,
    client: &kube::Client,
    n: usize,
) -> Vec<Row> {
    let Nodewhy { process, .. } = control_plane.nodewhy(rights, &[]);
    until_verdicts_begin(&process);
    runtime.block_on(async {
        sleep(Duration::from_secs(30)).await;
        let stuck = written(client).await;
        let (begun, before, served) = (Instant::now(), cpu(process.id(), OWN), cpu(control_plane.apiserver(), OWN));
        let replaced = replace_all(client, n).await;
        let spent = cpu(process.id(), OWN) - before;
        let row = Row {
            served: Some(cpu(control_plane.apiserver(), OWN) - served),
            ..Row::of(format!("nodewhy run, while {replaced} machines are replaced"), begun, spent, process.id())
        };
        // What was stuck before is stuck still, and nothing else ever was.
        assert_eq!(written(client).await, stuck, "an upgrade in order was taken for trouble");
        vec![row]
    })
}

/// The name and version of every NodeDiagnosis.
async fn written(client: &kube::Client) -> Vec<(Option<String>, Option<String>)> {
    let all = diagnoses(client).list(&ListParams::default()).await.expect("NodeDiagnoses");
    all.items.into_iter().map(|d| (d.metadata.name, d.metadata.resource_version)).collect()
}

async fn replace_all(client: &kube::Client, n: usize) -> usize {
    let old = healthy(n);
    let count = old.clone().count();
    let mut ticks = interval(LASTS / u32::try_from(count).expect("a few thousand"));
    let mut replacements = JoinSet::new();
    for machine in old {
        ticks.tick().await;
        replacements.spawn(replace(client.clone(), machine, machine + n));
    }
    replacements.join_all().await;
    count
}

/// As Karpenter does it: the new one first, and the old one goes when that is ready.
async fn replace(client: kube::Client, old: usize, new: usize) {
    let (nodes, claims) = (nodes(&client), claims(&client));
    let (young, grown) = (claim(new, Fate::Young), claim(new, Fate::Healthy));
    let name = claim_name(new);
    claims.create(&PostParams::default(), &object(young.clone())).await.expect("a NodeClaim");
    status(&claims, &name, &young).await;
    sleep(BOOTS).await;
    let mut joined = node(new);
    let node_name = joined["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    for condition in joined["status"]["conditions"].as_array_mut().into_iter().flatten() {
        if condition["type"] == "Ready" {
            condition["status"] = json!("False");
            condition["reason"] = json!("KubeletNotReady");
        }
    }
    joined["spec"]["taints"] = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
    nodes.create(&PostParams::default(), &object(at_this_time(joined))).await.expect("a Node");
    sleep(GETS_READY).await;
    let usable = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch(&node_name, &PatchParams::default(), &usable).await.expect("a Node");
    status(&nodes, &node_name, &node(new)).await;
    status(&claims, &name, &grown).await;
    let left = node(old)["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    delete(&nodes, &left).await;
    delete(&claims, &claim_name(old)).await;
}

async fn status(api: &Api<DynamicObject>, name: &str, of: &Value) {
    let status = json!({"status": at_this_time(of.clone())["status"]});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.expect("an object");
}

async fn delete(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.expect("an object");
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    // Without finalizers it is gone already.
    drop(api.patch(name, &PatchParams::default(), &free).await);
}

/// With conditions of now, as the fleet's are of another day.
fn at_this_time(mut object: Value) -> Value {
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
        condition["lastTransitionTime"] = json!(now);
        if condition.get("lastHeartbeatTime").is_some() {
            condition["lastHeartbeatTime"] = json!(now);
        }
    }
    object
}
