//! Events, so that `kubectl describe nodeclaim` and `kubectl describe node` show the cause.

use crate::api::{NodeDiagnosis, ObjectRef};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event, EventType, Recorder};

/// Longest note that the API server takes.
/// Source: kubernetes pkg/apis/core/validation/events.go `NoteLengthLimit` (v1.36).
const NOTE: usize = 1024;

/// Says the verdict on its subject, and on the Node where that is another object.
pub(super) async fn announce(recorder: &Recorder, diagnosis: &NodeDiagnosis) -> kube::Result<()> {
    let Some(status) = &diagnosis.status else { return Ok(()) };
    let event = Event {
        type_: EventType::Warning,
        reason: status.cause.clone(),
        note: Some(cut(&status.summary).to_owned()),
        action: "Diagnose".to_owned(),
        secondary: None,
    };
    for subject in subjects(diagnosis) {
        recorder.publish(&event, &subject).await?;
    }
    Ok(())
}

fn subjects(diagnosis: &NodeDiagnosis) -> Vec<ObjectReference> {
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

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(NOTE)).unwrap_or(text)
}
