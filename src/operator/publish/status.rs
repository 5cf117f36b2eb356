//! NodeDiagnosis objects, by server-side apply.
//!
//! They have no owner: garbage collection would take the evidence with the NodeClaim.

use engine::api::FIELD_MANAGER;
use engine::api::NodeDiagnosis;
use engine::triage::{Delete, Write};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::{Client, Resource};
use serde_json::{Value, json};
use std::sync::Once;

/// Deletes exactly the object that is meant. One that is gone, or that another has taken the place of, is fine.
pub(super) async fn delete(client: &Client, delete: &Delete) -> kube::Result<()> {
    let api: Api<NodeDiagnosis> = Api::all(client.clone());
    let preconditions = delete.uid.clone().map(|uid| Preconditions { uid: Some(uid), resource_version: None });
    match api.delete(&delete.name, &DeleteParams { preconditions, ..DeleteParams::background() }).await {
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        other => other.map(drop),
    }
}

/// Writes metadata and spec, then the status subresource. A repetition changes nothing.
pub(super) async fn write(client: &Client, write: &Write) -> kube::Result<()> {
    let api: Api<NodeDiagnosis> = Api::all(client.clone());
    let Some(name) = write.diagnosis.metadata.name.as_deref() else { return Ok(()) };
    if write.replaces {
        match api.delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => drop(other?),
        }
    }
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let (main, status) = applied(name, &write.diagnosis);
    let mut written: Option<ObjectMeta> = None;
    for (mut half, is_status) in [(main, false), (status, true)] {
        // The second half goes on the first, and not on what another leader has made of it while this one was held
        // still.
        if let Some(main) = written.take() {
            half["metadata"]["resourceVersion"] = json!(main.resource_version);
            not_before(&mut half, main.creation_timestamp);
        }
        loop {
            let patch = Patch::Apply(&half);
            let sent = if is_status {
                api.patch_status(name, &params, &patch).await
            } else {
                api.patch(name, &params, &patch).await
            };
            match sent {
                Ok(answer) => {
                    written = Some(answer.metadata);
                    break;
                }
                Err(kube::Error::Api(answer)) if without_undeclared(&mut half, &answer.message) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// A condition of an object is not older than the object, however long the machine has waited, the API server was away
/// or the object before it has stood.
fn not_before(half: &mut Value, creation: Option<Time>) {
    // Whole seconds, in UTC: the texts are in the order of the times.
    let Some(created) = creation.and_then(|at| serde_json::to_value(at).ok()) else { return };
    for condition in half["status"]["conditions"].as_array_mut().into_iter().flatten() {
        let since = &mut condition["lastTransitionTime"];
        if since.as_str() < created.as_str() {
            *since = created.clone();
        }
    }
}

/// Takes out the fields that an older CustomResourceDefinition does not know: server-side apply refuses them, where
/// other writes only drop them. Says whether there were any.
/// Source: sigs.k8s.io/structured-merge-diff/v6 (v6.3.3) typed/validate.go `errorf("field not declared in schema")`,
/// typed/helpers.go `ValidationErrors.Error`: one line each, the path first.
fn without_undeclared(half: &mut Value, message: &str) -> bool {
    static SAID: Once = Once::new();
    let mut found = false;
    for line in message.lines() {
        let Some((before, _)) = line.split_once("field not declared in schema") else { continue };
        let path = before.trim_end_matches(": ").rsplit(' ').next().unwrap_or_default();
        if remove(half, path) {
            found = true;
            SAID.call_once(|| {
                tracing::warn!(
                    field = path,
                    "the CustomResourceDefinition is older than nodewhy; fields that it lacks are left out"
                );
            });
        }
    }
    found
}

/// Removes the field at a path like `.status.fix.steps[0].risk`.
fn remove(value: &mut Value, path: &str) -> bool {
    let pointer = path.replace('[', "/").replace(']', "").replace('.', "/");
    let Some((parent, field)) = pointer.rsplit_once('/') else { return false };
    value.pointer_mut(parent).and_then(Value::as_object_mut).is_some_and(|parent| parent.remove(field).is_some())
}

/// The two halves of the object: what is not of a half must not be in its patch, or the manager would own it twice.
fn applied(name: &str, diagnosis: &NodeDiagnosis) -> (Value, Value) {
    let (api_version, kind) = (NodeDiagnosis::api_version(&()), NodeDiagnosis::kind(&()));
    let main = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "labels": diagnosis.labels() },
        "spec": diagnosis.spec,
    });
    let status =
        json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "status": diagnosis.status });
    (main, status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_condition_is_older_than_its_object() {
        let of = |times: [&str; 3]| json!({ "status": { "conditions": times.map(|at| json!({ "lastTransitionTime": at })) } });
        let created: Time = serde_json::from_value(json!("2026-11-21T12:00:00Z")).unwrap();
        let mut half = of(["2026-11-21T11:59:59Z", "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"]);
        not_before(&mut half, Some(created));
        assert_eq!(half, of(["2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z", "2026-11-21T12:00:01Z"]));
        let mut half = json!({ "status": { "cause": "A" } });
        not_before(&mut half, None);
        assert_eq!(half, json!({ "status": { "cause": "A" } }));
    }

    #[test]
    fn fields_that_the_definition_lacks_are_taken_out_and_no_others() {
        let whole = json!({ "status": { "cause": "A", "ruledOut": [], "fix": { "steps": [{ "text": "x", "risk": "Inspect" }] } } });
        let mut half = whole.clone();
        let one = "failed to create typed patch object (/a; nodewhy.dev/v1alpha1, Kind=NodeDiagnosis): \
                   .status.ruledOut: field not declared in schema";
        assert!(without_undeclared(&mut half, one));
        assert_eq!(half, json!({ "status": { "cause": "A", "fix": whole["status"]["fix"] } }));
        assert!(!without_undeclared(&mut half, one), "a refusal that repeats itself is one");
        let two = "failed to create typed patch object (/a; nodewhy.dev/v1alpha1, Kind=NodeDiagnosis): errors:\n  \
                   .status.ruledOut: field not declared in schema\n  .status.fix.steps[0].risk: field not declared in \
                   schema";
        let mut half = whole.clone();
        assert!(without_undeclared(&mut half, two));
        assert_eq!(half, json!({ "status": { "cause": "A", "fix": { "steps": [{ "text": "x" }] } } }));
        assert!(!without_undeclared(&mut half, "Internal error occurred: etcd is away"));
    }
}
