//! Events, so that `kubectl describe` shows the cause on the NodeClaim, the Node, the NodePool and the node class.

use engine::api::FIELD_MANAGER;
use engine::api::{NodeDiagnosis, ObjectRef};
use engine::triage::IncidentSummary;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// Events about objects without namespace are kept there.
const NAMESPACE: &str = "default";
const ACTION: &str = "Diagnose";

/// Longest note that the API server takes.
/// Source: kubernetes pkg/apis/core/validation/events.go `NoteLengthLimit` (v1.36).
const NOTE: usize = 1024;

/// Who reports: nodewhy, and which replica.
pub(super) fn reporter(instance: &str) -> Reporter {
    Reporter { controller: FIELD_MANAGER.to_owned(), instance: Some(instance.to_owned()) }
}

/// Says on a NodePool and its node class how many machines a cause holds up.
///
/// Not by the Recorder: it repeats the first note of a reason for six minutes, and the number in the note is the news.
pub(super) async fn summarize(client: &Client, instance: &str, summary: &IncidentSummary) -> kube::Result<()> {
    let events: Api<v1::Event> = Api::namespaced(client.clone(), NAMESPACE);
    for ObjectRef { api_version, kind, name, uid } in &summary.regarding {
        let now = Timestamp::now();
        let metadata = ObjectMeta {
            name: Some(format!("{name}.{:x}", now.as_nanosecond())),
            namespace: Some(NAMESPACE.to_owned()),
            ..ObjectMeta::default()
        };
        let event = v1::Event {
            metadata,
            type_: Some("Warning".to_owned()),
            reason: Some(summary.cause.clone()),
            note: Some(cut(&summary.note).to_owned()),
            action: Some(ACTION.to_owned()),
            event_time: Some(MicroTime(now)),
            regarding: Some(reference(api_version, kind, name, uid)),
            reporting_controller: Some(FIELD_MANAGER.to_owned()),
            reporting_instance: Some(instance.to_owned()),
            ..v1::Event::default()
        };
        events.create(&PostParams::default(), &event).await?;
    }
    Ok(())
}

/// Says the verdict on its subject, and on the Node where that is another object.
pub(super) async fn announce(recorder: &Recorder, diagnosis: &NodeDiagnosis) -> kube::Result<()> {
    let Some(status) = &diagnosis.status else { return Ok(()) };
    let event = Event {
        type_: EventType::Warning,
        reason: status.cause.to_string(),
        note: Some(cut(&status.summary).to_owned()),
        action: ACTION.to_owned(),
        secondary: None,
    };
    for subject in subjects(diagnosis) {
        recorder.publish(&event, &subject).await?;
    }
    Ok(())
}

pub(super) fn subjects(diagnosis: &NodeDiagnosis) -> Vec<ObjectReference> {
    let ObjectRef { api_version, kind, name, uid } = &diagnosis.spec.subject;
    let mut subjects = vec![reference(api_version, kind, name, uid)];
    if let Some(node) = diagnosis.spec.node.as_ref().filter(|_| kind != "Node") {
        subjects.push(reference("v1", "Node", &node.name, &node.uid));
    }
    subjects
}

fn reference(api_version: &str, kind: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(api_version.to_owned()),
        kind: Some(kind.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

pub(super) fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(NOTE)).unwrap_or(text)
}
