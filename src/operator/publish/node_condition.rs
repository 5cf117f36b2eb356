//! The condition of a Node that carries its verdict, by server-side apply: what others write on the Node stays theirs,
//! and what is no longer applied is gone.

use super::{TIMEOUT, fence};
use crate::kube_client::failure;
use crate::operator::lease::Leads;
use engine::api::FIELD_MANAGER;
use engine::triage::NodeVerdict;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

/// What only the component `node-condition` permits.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[("", "nodes/status", &["patch"], None)];

/// Verdicts that may wait; who has more comes again.
const QUEUE: usize = 256;
/// Between two of them.
const PACE: Duration = Duration::from_millis(50);

/// Starts to write, one after the other, while this replica leads.
pub fn start(client: Client, leads: Leads) -> mpsc::Sender<NodeVerdict> {
    let (orders, mut ordered) = mpsc::channel::<NodeVerdict>(QUEUE);
    let client = fence::fenced(client, leads.clone());
    tokio::spawn(async move {
        let mut failing = false;
        while let Some(verdict) = ordered.recv().await {
            let Some(lasts) = leads.borrow().and_then(|leadership| leadership.lasts(Instant::now())) else { continue };
            let why = match timeout(TIMEOUT.min(lasts), write(&client, &verdict)).await {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(failure::of(&error).to_string()),
                Err(_) => Some("no answer in time".to_owned()),
            };
            if let Some(why) = &why
                && !failing
            {
                tracing::warn!(node = verdict.node.name, why, "the condition of a Node cannot be written");
            }
            failing = why.is_some();
            sleep(PACE).await;
        }
    });
    orders
}

/// With the UID: never on another Node of that name.
async fn write(client: &Client, verdict: &NodeVerdict) -> kube::Result<()> {
    let api: Api<Node> = Api::all(client.clone());
    let name = verdict.node.name.as_str();
    let conditions: Vec<_> = verdict.condition.iter().collect();
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "uid": verdict.node.uid },
        "status": { "conditions": conditions },
    });
    let params = PatchParams::apply(FIELD_MANAGER).force();
    match api.patch_status(name, &params, &Patch::Apply(node)).await {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}
