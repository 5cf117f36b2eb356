//! The removal of a taint, and the Events about it. One at a time, in the order in which they were decided, and only
//! while this replica leads.

use super::{TIMEOUT, event, fence};
use crate::kube_client::failure;
use crate::operator::lease::Leads;
use engine::api::FIELD_MANAGER;
use engine::api::NodeDiagnosis;
use engine::remediation::{PatchAnswer, Remark, Removal, RemovalOutcome};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder};
use kube::{Client, ResourceExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// What only the component `remediation` permits.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[("", "nodes", &["patch"], None)];

/// What the API server says of a JSON patch whose test fails; an object that is invalid is named, with what is wrong
/// with it.
/// Source: kubernetes v1.36.3 staging/src/k8s.io/apiserver pkg/endpoints/handlers/patch.go `applyJSPatch`, apimachinery
/// pkg/api/errors/errors.go `NewGenericServerResponse`.
const NOT_APPLICABLE: &str = "the server rejected our request due to an error in our request";

/// Removals and remarks that may wait.
const QUEUE: usize = 256;

/// What is to be carried out.
#[derive(Debug)]
pub enum Remedy {
    Remove(Box<Removal>),
    /// Say it in an Event on the subject of the diagnosis and on its Node.
    Tell(Arc<NodeDiagnosis>, Remark),
}

/// Starts to carry out remedies. The answers to removals come back by the second channel.
pub fn start(
    client: Client,
    instance: &str,
    leads: Leads,
) -> (mpsc::Sender<Remedy>, mpsc::UnboundedReceiver<(Removal, PatchAnswer)>) {
    let (orders, mut ordered) = mpsc::channel(QUEUE);
    // As many as there are removals: whoever orders must not wait for one who waits for him.
    let (answers, answered) = mpsc::unbounded_channel();
    let client = fence::fenced(client, leads.clone());
    let recorder = Recorder::new(client.clone(), event::reporter(instance));
    tokio::spawn(async move {
        while let Some(remedy) = ordered.recv().await {
            let lasts = leads.borrow().and_then(|leadership| leadership.lasts(Instant::now()));
            match remedy {
                Remedy::Remove(removal) => {
                    let answer = match lasts {
                        Some(lasts) => {
                            timeout(lasts, remove(&client, &removal)).await.unwrap_or_else(|_| unanswered(lasts))
                        }
                        None => PatchAnswer::Void,
                    };
                    if answers.send((*removal, answer)).is_err() {
                        return;
                    }
                }
                Remedy::Tell(diagnosis, remark) => {
                    if lasts.is_some()
                        && !matches!(timeout(TIMEOUT, tell(&recorder, &diagnosis, &remark)).await, Ok(Ok(())))
                    {
                        tracing::warn!(
                            name = remark.diagnosis,
                            reason = remark.reason,
                            "an Event could not be written"
                        );
                    }
                }
            }
        }
    });
    (orders, answered)
}

/// Sends the patch, once.
pub async fn remove(client: &Client, removal: &Removal) -> PatchAnswer {
    let api: Api<Node> = Api::all(client.clone());
    let params = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        dry_run: removal.dry_run,
        ..PatchParams::default()
    };
    let patch = Patch::Json::<()>(removal.patch.clone());
    match timeout(TIMEOUT, api.patch(&removal.node, &params, &patch)).await {
        Ok(Ok(node)) => PatchAnswer::Done(node.resource_version().unwrap_or_default()),
        Ok(Err(kube::Error::Api(status))) => match status.code {
            409 => PatchAnswer::Conflict,
            422 if status.message == NOT_APPLICABLE => PatchAnswer::Conflict,
            401 | 403 if !status.message.contains("admission webhook") => {
                PatchAnswer::NotPermitted(failure::said(&status.message))
            }
            400..=499 => PatchAnswer::Rejected(failure::said(&status.message)),
            _ => PatchAnswer::Unanswered(failure::said(&status.message)),
        },
        Ok(Err(error)) => PatchAnswer::Unanswered(error.to_string()),
        Err(_) => unanswered(TIMEOUT),
    }
}

fn unanswered(within: Duration) -> PatchAnswer {
    PatchAnswer::Unanswered(format!("no answer in {} seconds", within.as_secs()))
}

async fn tell(recorder: &Recorder, diagnosis: &NodeDiagnosis, remark: &Remark) -> kube::Result<()> {
    let (type_, reason) = match remark.result {
        // What becomes of it is told in a moment.
        RemovalOutcome::Announced => return Ok(()),
        RemovalOutcome::Removed => (EventType::Normal, "UninitializedTaintRemoved"),
        RemovalOutcome::DryRun => (EventType::Normal, "UninitializedTaintWouldBeRemoved"),
        RemovalOutcome::PutBack => (EventType::Warning, "UninitializedTaintPutBack"),
        RemovalOutcome::Refused | RemovalOutcome::Conflict | RemovalOutcome::Rejected | RemovalOutcome::Unanswered => {
            (EventType::Warning, "UninitializedTaintKept")
        }
    };
    // The recorder counts Events of one reason and action as one, and keeps the first note: the action tells refusals
    // apart.
    let event = Event {
        type_,
        reason: reason.to_owned(),
        note: Some(event::cut(&remark.message).to_owned()),
        action: remark.reason.to_owned(),
        secondary: None,
    };
    for subject in event::subjects(diagnosis) {
        recorder.publish(&event, &subject).await?;
    }
    Ok(())
}
