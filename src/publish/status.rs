//! NodeDiagnosis objects, by server-side apply.
//!
//! They have no owner: garbage collection would take the evidence with the NodeClaim.

use super::MANAGER;
use crate::api::NodeDiagnosis;
use crate::triage::Write;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, Resource};
use serde_json::{Value, json};

/// The diagnoses that the cluster holds.
pub async fn list(client: &Client) -> kube::Result<Vec<NodeDiagnosis>> {
    let api: Api<NodeDiagnosis> = Api::all(client.clone());
    let mut params = ListParams::default().limit(500);
    let mut all = Vec::new();
    loop {
        let page = api.list(&params).await?;
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(all),
        }
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
