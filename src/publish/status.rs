//! NodeDiagnosis objects, by server-side apply.
//!
//! They have no owner: garbage collection would take the evidence with the NodeClaim.

use super::MANAGER;
use crate::api::NodeDiagnosis;
use crate::triage::{Delete, Write};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Client, Resource};
use serde_json::{Value, json};

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
    let params = PatchParams::apply(MANAGER).force();
    let (main, status) = applied(name, &write.diagnosis);
    api.patch(name, &params, &Patch::Apply(main)).await?;
    api.patch_status(name, &params, &Patch::Apply(status)).await?;
    Ok(())
}

/// The two halves of the object: what is not of a half must not be in its patch, or the manager would own it twice.
fn applied(name: &str, diagnosis: &NodeDiagnosis) -> (Value, Value) {
    let (api_version, kind) = (NodeDiagnosis::api_version(&()), NodeDiagnosis::kind(&()));
    let main = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": { "name": name, "labels": diagnosis.metadata.labels },
        "spec": diagnosis.spec,
    });
    let status = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "status": diagnosis.status });
    (main, status)
}
