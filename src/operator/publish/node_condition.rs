//! The condition of a Node that carries its verdict, by server-side apply: what others write on the Node stays theirs,
//! and what is no longer applied is gone.

use super::brake::Brake;
use super::retry_after::RetryAfter;
use super::{TIMEOUT, fence};
use crate::kube_client::failure;
use crate::kube_client::raw::Raw;
use crate::operator::lease::{Leads, right_in};
use engine::api::FIELD_MANAGER;
use engine::triage::NodeVerdict;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, ApiResource, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// Writes that only the component `node-condition` permits.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[("", "nodes/status", &["patch"], None)];

/// Number of verdicts that may wait. The sender tries again later with the others.
const QUEUE: usize = 256;
/// Pause between two writes.
const PACE: Duration = Duration::from_millis(50);

/// A verdict, and the term in which it was to be written.
pub type Ordered = (u64, NodeVerdict);

/// Starts to write, one after the other, while this replica leads.
pub fn start(client: Client, leads: Leads, tasks: &mut JoinSet<()>) -> mpsc::Sender<Ordered> {
    let (orders, ordered) = mpsc::channel(QUEUE);
    tasks.spawn(carry_out(client, leads, ordered));
    orders
}

async fn carry_out(client: Client, leads: Leads, mut ordered: mpsc::Receiver<Ordered>) {
    let retry_after = RetryAfter::default();
    let client = retry_after.heeding(client);
    let mut fenced: Option<(u64, Client)> = None;
    let mut brake = Brake::default();
    let mut failing = false;
    while let Some((term, verdict)) = ordered.recv().await {
        let begun = Instant::now();
        // `NodeConditions` orders it again.
        if brake.delay(begun) > begun {
            continue;
        }
        let Some(lasts) = right_in(&leads, term) else { continue };
        let (_, client) = fenced
            .take_if(|(of, _)| *of == term)
            .unwrap_or_else(|| (term, fence::fenced(client.clone(), leads.clone(), term)));
        let why = match timeout(TIMEOUT.min(lasts), write(&client, &verdict)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(failure::of(&error).to_string()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        fenced = Some((term, client));
        let now = Instant::now();
        let asked = retry_after.take(now);
        match &why {
            None => brake.succeeded(),
            Some(_) => brake.failed(begun, now, asked),
        }
        if let Some(why) = &why
            && !failing
        {
            tracing::warn!(node = verdict.node.name, why, "the condition of a Node cannot be written");
        }
        failing = why.is_some();
        sleep(PACE).await;
    }
}

/// With the UID: never on another Node of that name.
async fn write(client: &Client, verdict: &NodeVerdict) -> kube::Result<()> {
    let api: Api<Raw> = Api::all_with(client.clone(), &ApiResource::erase::<Node>(&()));
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
