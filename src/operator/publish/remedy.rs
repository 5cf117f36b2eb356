//! The removal of a taint, and the Events about it. One at a time, in the order in which they were decided, and only
//! while this replica leads.

use super::{COURTESY, TIMEOUT, event, fence};
use crate::kube_client::raw::Raw;
use crate::kube_client::{failure, resource_of};
use crate::operator::lease::{Leads, right_in};
use engine::api::FIELD_MANAGER;
use engine::api::NodeDiagnosis;
use engine::objects::input::Object;
use engine::remediation::{PatchAnswer, Remark, Removal, RemovalOutcome, Witness};
use engine::triage::change::ReadFailure;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ApiResource, ListParams, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, ResourceExt};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Writes that only the component `remediation` permits.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[("", "nodes", &["patch"], None)];

/// The answer of the API server to a JSON patch with a failed test. For an invalid object, the answer names the object
/// and the mistake.
/// Source: kubernetes v1.36.3 staging/src/k8s.io/apiserver pkg/endpoints/handlers/patch.go `applyJSPatch`, apimachinery
/// pkg/api/errors/errors.go `NewGenericServerResponse`.
const NOT_APPLICABLE: &str = "the server rejected our request due to an error in our request";

/// Number of removals and remarks that may wait.
const QUEUE: usize = 256;

/// How long nodewhy waits for each object that a removal rests on. Together that is less than a term lasts unrenewed.
const READ: Duration = Duration::from_secs(3);

/// A removal or an Event to carry out.
#[derive(Debug)]
pub enum Remedy {
    Remove(Box<Removal>),
    /// Say it in an Event on the subject of the diagnosis and on its Node.
    Tell(Arc<NodeDiagnosis>, Remark),
}

/// A remedy, and the term in which it was decided. It is void in the next term.
#[derive(Debug)]
pub struct Ordered {
    pub term: u64,
    pub remedy: Remedy,
}

/// The first channel takes orders. The second returns the answers to removals.
pub type Channels = (mpsc::Sender<Ordered>, mpsc::UnboundedReceiver<(Removal, PatchAnswer)>);

/// Starts to carry out remedies.
pub fn start(client: Client, instance: &str, leads: Leads, tasks: &mut JoinSet<()>) -> Channels {
    let (orders, ordered) = mpsc::channel(QUEUE);
    // Unbounded, because the sender of removals must not wait for the receiver, which may wait for the sender.
    let (answers, answered) = mpsc::unbounded_channel();
    let reporter = event::reporter(instance);
    tasks.spawn(async move { carry_out(&client, &reporter, &leads, ordered, &answers).await });
    (orders, answered)
}

/// The clients of one term.
struct Writer {
    term: u64,
    client: Client,
    recorder: Recorder,
}

async fn carry_out(
    client: &Client,
    reporter: &Reporter,
    leads: &Leads,
    mut ordered: mpsc::Receiver<Ordered>,
    answers: &mpsc::UnboundedSender<(Removal, PatchAnswer)>,
) {
    let mut last: Option<Writer> = None;
    while let Some(Ordered { term, remedy }) = ordered.recv().await {
        let lasts = right_in(leads, term);
        let writer = last.take_if(|writer| writer.term == term).unwrap_or_else(|| {
            let client = fence::fenced(client.clone(), leads.clone(), term);
            Writer { term, recorder: Recorder::new(client.clone(), reporter.clone()), client }
        });
        match remedy {
            Remedy::Remove(removal) => {
                let answer = match lasts {
                    Some(lasts) => {
                        timeout(lasts, remove(&writer.client, &removal)).await.unwrap_or_else(|_| unanswered(lasts))
                    }
                    None => PatchAnswer::Void,
                };
                if answers.send((*removal, answer)).is_err() {
                    return;
                }
            }
            Remedy::Tell(diagnosis, remark) => {
                if lasts.is_some()
                    && !matches!(timeout(COURTESY, tell(&writer.recorder, &diagnosis, &remark)).await, Ok(Ok(())))
                {
                    tracing::warn!(name = remark.diagnosis, reason = remark.reason, "an Event could not be written");
                }
            }
        }
        last = Some(writer);
    }
}

/// Reads the objects that the removal rests on again, and compares them with what nodewhy judged. A silent watch shows
/// the past, and does not show a pause that was set since.
async fn is_current(client: &Client, removal: &Removal) -> Result<(), String> {
    for witness in &removal.rests_on {
        let what = || format!("{} {}", witness.input.name(), witness.name);
        let read = timeout(READ, read(client, witness)).await.map_err(|_| format!("no answer about {}", what()))?;
        let object = read.map_err(|why| format!("{} cannot be read: {why}", what()))?;
        witness.stands(object.as_ref())?;
    }
    Ok(())
}

/// Lists the one object, because nodewhy has the rights to list and to watch.
async fn read(client: &Client, witness: &Witness) -> Result<Option<Object>, ReadFailure> {
    for source in witness.input.sources() {
        let resource = resource_of(source);
        let api: Api<Raw> = Api::all_with(client.clone(), &resource);
        let params = ListParams::default().fields(&format!("metadata.name={}", witness.name));
        let found = api.list(&params).await.map_err(|error| failure::of(&error))?;
        if let Some(raw) = found.items.iter().find(|raw| raw.name() == witness.name) {
            let (object, odd) =
                raw.read(witness.input, &resource).map_err(|error| ReadFailure::Unanswered(failure::said(&error)))?;
            // A guard may need the very field that cannot be read.
            if let Some(field) = odd.first() {
                return Err(ReadFailure::Unanswered(failure::said(&field.to_string())));
            }
            return Ok(Some(object));
        }
    }
    Ok(None)
}

/// Sends the patch, once.
pub async fn remove(client: &Client, removal: &Removal) -> PatchAnswer {
    if let Err(why) = is_current(client, removal).await {
        return PatchAnswer::NotCurrent(failure::said(&why));
    }
    let api: Api<Raw> = Api::all_with(client.clone(), &ApiResource::erase::<Node>(&()));
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
        Ok(Err(error)) => PatchAnswer::Unanswered(failure::of(&error).to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::lease::Candidate;
    use engine::objects::{NodeClaim, NodePool};
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::Mutex;

    const PLANTED: &str = "hunter2-7f3a9c11";

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Fault {
        None,
        Code(u16),
        Silence,
        /// The connection fails, and the error quotes a secret.
        Broken,
        /// It was paused, or is being deleted, and no watch has said so.
        Changed,
        Gone,
    }

    fn pool(paused: bool) -> Value {
        let annotations = if paused { json!({ "nodewhy.dev/pause-remediation": "true" }) } else { json!({}) };
        json!({ "metadata": { "name": "general", "uid": "p", "annotations": annotations } })
    }

    fn claim(deleted: bool) -> Value {
        let deleted = if deleted { json!("2026-01-15T12:00:00Z") } else { Value::Null };
        let registered = json!({ "type": "Registered", "status": "True", "reason": "Registered" });
        json!({
            "metadata": { "name": "general-a", "uid": "c", "deletionTimestamp": deleted },
            "spec": { "nodeClassRef": { "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" } },
            "status": { "providerID": "aws:///x/i-1", "conditions": [registered] },
        })
    }

    fn removal() -> Removal {
        let node = json!({
            "metadata": { "name": "n", "resourceVersion": "7" },
            "spec": { "taints": [{ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" }] },
        });
        let node = serde_json::from_value(node).expect("a Node");
        let mut removal =
            Removal::from(&node, "general-a", false, chrono::DateTime::UNIX_EPOCH).expect("it has the taint");
        let pool: NodePool = serde_json::from_value(pool(false)).expect("a NodePool");
        let claim: NodeClaim = serde_json::from_value(claim(false)).expect("a NodeClaim");
        removal.rests_on = vec![Witness::of_claim(&claim), Witness::of_pool(&pool)];
        removal
    }

    /// An API server with one NodePool, NodeClaim and Node, where this happens to the lists of one kind; and the
    /// patches that reached it.
    fn api_server(plural: &'static str, fault: Fault) -> (Client, Arc<Mutex<usize>>) {
        let patches = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&patches);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let counted = Arc::clone(&counted);
            async move {
                let path = request.uri().path().to_owned();
                let fault = if path.ends_with(plural) { fault } else { Fault::None };
                let list = |item: Value| json!({ "kind": "List", "apiVersion": "v1", "metadata": {}, "items": if fault == Fault::Gone { json!([]) } else { json!([item]) } });
                let (code, body): (u16, Value) = match fault {
                    Fault::Silence => std::future::pending().await,
                    Fault::Broken => return Err(tower::BoxError::from(format!("proxy with password={PLANTED}"))),
                    Fault::Code(code) => {
                        (code, json!({ "kind": "Status", "status": "Failure", "code": code, "message": "no" }))
                    }
                    _ if path.ends_with("nodepools") => (200, list(pool(fault == Fault::Changed))),
                    _ if path.ends_with("nodeclaims") => (200, list(claim(fault == Fault::Changed))),
                    _ => {
                        *counted.lock().expect("nobody panics") += 1;
                        (200, json!({ "metadata": { "name": "n", "resourceVersion": "8" } }))
                    }
                };
                let body = Body::from(body.to_string().into_bytes());
                Ok::<_, tower::BoxError>(http::Response::builder().status(code).body(body)?)
            }
        });
        (Client::new(service, "default"), patches)
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_cannot_be_seen_keeps_the_taint() {
        for plural in ["nodepools", "nodeclaims"] {
            for fault in
                [Fault::Code(403), Fault::Code(404), Fault::Code(500), Fault::Silence, Fault::Changed, Fault::Gone]
            {
                let (client, patches) = api_server(plural, fault);
                let answer = remove(&client, &removal()).await;
                assert!(matches!(answer, PatchAnswer::NotCurrent(_)), "{plural} {fault:?}: {answer:?}");
                assert_eq!(*patches.lock().expect("nobody panics"), 0, "{plural} {fault:?}");
            }
        }
        let (client, patches) = api_server("nodepools", Fault::None);
        assert_eq!(remove(&client, &removal()).await, PatchAnswer::Done("8".to_owned()));
        assert_eq!(*patches.lock().expect("nobody panics"), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn no_secret_of_an_error_reaches_the_diagnosis() {
        for plural in ["nodepools", "nodes/n"] {
            let (client, _) = api_server(plural, Fault::Broken);
            let answer = remove(&client, &removal()).await;
            let (PatchAnswer::NotCurrent(why) | PatchAnswer::Unanswered(why)) = &answer else { panic!("{answer:?}") };
            assert!(why.contains("proxy with") && !why.contains(PLANTED), "{plural}: {why}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_removal_is_void_in_any_term_but_its_own() {
        let (client, patches) = api_server("nodepools", Fault::None);
        let (mut candidate, leads) = Candidate::new(None);
        candidate.stand().expect("no thread");
        let mut tasks = JoinSet::new();
        let (orders, mut answers) = start(client, "test", leads, &mut tasks);
        let mut order = async |term| {
            let remedy = Remedy::Remove(Box::new(removal()));
            orders.send(Ordered { term, remedy }).await.expect("it lives");
            answers.recv().await.expect("it answers").1
        };
        // This replica leads in its first term.
        assert_eq!([order(0).await, order(2).await], [PatchAnswer::Void, PatchAnswer::Void]);
        assert_eq!(*patches.lock().expect("nobody panics"), 0);
        assert_eq!(order(1).await, PatchAnswer::Done("8".to_owned()));
    }
}
