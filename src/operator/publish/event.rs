//! Events, so that `kubectl describe` shows the cause on the NodeClaim, the Node, the NodePool, the node class and
//! aws-auth.

use engine::api::FIELD_MANAGER;
use engine::api::{NodeDiagnosis, ObjectRef};
use engine::triage::{FindingNotice, IncidentSummary};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use kube::runtime::events::Reporter;
use sha2::{Digest, Sha256};

/// Events about objects without namespace are kept there.
const NAMESPACE: &str = "default";
const ACTION: &str = "Diagnose";
/// The action of Events about the configuration.
const LINT: &str = "Lint";

/// Longest note that the API server takes.
/// Source: kubernetes pkg/apis/core/validation/events.go `NoteLengthLimit` (v1.36).
const NOTE: usize = 1024;
/// Characters of a name before the hash. A name has 253 at most.
const LONGEST: usize = 230;

/// The reporter of Events: nodewhy and the name of the replica.
pub(super) fn reporter(instance: &str) -> Reporter {
    Reporter { controller: FIELD_MANAGER.to_owned(), instance: Some(instance.to_owned()) }
}

/// Says on a NodePool and its node class how many machines a cause holds up.
///
/// Not by the Recorder: it repeats the first note of a reason for six minutes, and the number in the note is the news.
pub(super) async fn summarize(client: &Client, instance: &str, summary: &IncidentSummary) -> kube::Result<()> {
    for ObjectRef { api_version, kind, name, uid } in &summary.regarding {
        let regarding = reference(api_version, kind, name, uid);
        let name = named(name, &[uid.as_str(), summary.cause.as_str(), summary.note.as_str()]);
        create(client, warning(instance, name, &summary.cause, &summary.note, regarding)).await?;
    }
    Ok(())
}

/// Says the verdict on its subject, and on the Node where that is another object.
///
/// Not by the Recorder. A new leader sends again the Events that the last leader may not have sent, and the API server
/// keeps one Event for each name.
pub(super) async fn announce(client: &Client, instance: &str, diagnosis: &NodeDiagnosis) -> kube::Result<()> {
    let Some(status) = &diagnosis.status else { return Ok(()) };
    let (cause, since) = (status.cause.to_string(), status.first_observed_at.to_rfc3339());
    for subject in subjects(diagnosis) {
        let of = [&subject.name, &subject.uid].map(|part| part.clone().unwrap_or_default());
        let name = named(&of[0], &[of[1].as_str(), cause.as_str(), since.as_str()]);
        create(client, warning(instance, name, &cause, &status.summary, subject)).await?;
    }
    Ok(())
}

/// Says on an object of the configuration which mistake came or went.
pub(super) async fn notice(client: &Client, instance: &str, notice: &FindingNotice) -> kube::Result<()> {
    let ObjectRef { api_version, kind, name, uid } = &notice.regarding;
    let namespace = notice.namespace.clone();
    let regarding = ObjectReference { namespace: namespace.clone(), ..reference(api_version, kind, name, uid) };
    let mut event = warning(
        instance,
        named(name, &[uid.as_str(), notice.identity.as_str()]),
        &notice.cause,
        &notice.note,
        regarding,
    );
    event.action = Some(LINT.to_owned());
    // kubernetes v1.36 pkg/apis/core/validation/events.go: an Event is in the namespace of its object.
    if namespace.is_some() {
        event.metadata.namespace = namespace;
    }
    if !notice.is_found {
        event.type_ = Some("Normal".to_owned());
    }
    create(client, event).await
}

/// An Event of that name says the same.
async fn create(client: &Client, event: v1::Event) -> kube::Result<()> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or(NAMESPACE);
    let events: Api<v1::Event> = Api::namespaced(client.clone(), namespace);
    match events.create(&PostParams::default(), &event).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

fn warning(instance: &str, name: String, reason: &str, note: &str, regarding: ObjectReference) -> v1::Event {
    v1::Event {
        metadata: ObjectMeta { name: Some(name), namespace: Some(NAMESPACE.to_owned()), ..ObjectMeta::default() },
        type_: Some("Warning".to_owned()),
        reason: Some(reason.to_owned()),
        note: Some(cut(note).to_owned()),
        action: Some(ACTION.to_owned()),
        event_time: Some(MicroTime(Timestamp::now())),
        regarding: Some(regarding),
        reporting_controller: Some(FIELD_MANAGER.to_owned()),
        reporting_instance: Some(instance.to_owned()),
        ..v1::Event::default()
    }
}

/// The name of the Event that says this about an object: the same from every replica.
fn named(object: &str, says: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in says {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hash.finalize()[..8]);
    let hash = u64::from_be_bytes(first);
    let object = object.get(..object.floor_char_boundary(LONGEST)).unwrap_or(object);
    format!("{}.{hash:016x}", object.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()))
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

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn an_event_has_one_name_whoever_sends_it_and_another_cause_another() {
        let name = named("general-7xk2p", &["uid-1", "UserData", "12:00"]);
        assert_eq!(name, named("general-7xk2p", &["uid-1", "UserData", "12:00"]));
        assert!(name.starts_with("general-7xk2p.") && name.len() == "general-7xk2p.".len() + 16, "{name}");
        for other in [["uid-2", "UserData", "12:00"], ["uid-1", "Quota", "12:00"], ["uid-1", "UserData", "12:01"]] {
            assert_ne!(name, named("general-7xk2p", &other));
        }
        assert_ne!(named("a", &["b", "c"]), named("a", &["bc", ""]));
        let long = named(&format!("{}-{}", "a".repeat(229), "b".repeat(23)), &["x"]);
        assert!(long.len() <= 253 && long.starts_with(&format!("{}.", "a".repeat(229))), "{long}");
    }
}
