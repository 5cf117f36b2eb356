//! The one change that is ever made to a Node.

use super::exact_taint;
use super::witness::Witness;
use crate::api::REMOVED_ANNOTATION;
use crate::case::taints::listed;
use crate::objects::{Node, NodeClaim, NodePool, Taint};
use chrono::{DateTime, SecondsFormat, Utc};
use json_patch::Patch;
use serde_json::{Value, json};

/// A taint to remove from a Node as it was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// The NodeDiagnosis that this is done for.
    pub diagnosis: String,
    pub node: String,
    /// The Node's resourceVersion that was judged, and no other, is patched.
    pub version: String,
    pub patch: Patch,
    pub taint: String,
    /// All taints before and after.
    pub before: String,
    pub after: String,
    /// The API server is asked, and stores nothing.
    pub dry_run: bool,
    /// The other objects that nodewhy judged. It reads them again before it sends the patch.
    pub rests_on: Vec<Witness>,
}

impl Removal {
    /// `None` where the Node does not carry the taint once and as expected, or has no resourceVersion: nothing to hold
    /// on to.
    pub fn from(node: &Node, diagnosis: &str, dry_run: bool, now: DateTime<Utc>) -> Option<Self> {
        let (index, taint) = exact_taint(node)?;
        let version = node.metadata.resource_version.as_deref()?;
        let path = format!("/spec/taints/{index}");
        let stamp = now.to_rfc3339_opts(SecondsFormat::Secs, true);
        // JSON patch adds no field to a map that is not there. Where it is, it is not replaced: others' are in it.
        let (place, value) = if node.metadata.annotations.is_empty() {
            ("/metadata/annotations".to_owned(), json!({ REMOVED_ANNOTATION: stamp }))
        } else {
            (format!("/metadata/annotations/{}", REMOVED_ANNOTATION.replace('/', "~1")), json!(stamp))
        };
        // The list is atomic and the index is of the moment: whoever wrote anything since makes a test fail, and
        // nothing is changed.
        let patch = json!([
            { "op": "test", "path": "/metadata/resourceVersion", "value": version },
            { "op": "test", "path": path, "value": written(taint) },
            { "op": "remove", "path": path },
            { "op": "add", "path": place, "value": value },
        ]);
        let left: Vec<_> =
            node.spec.taints.iter().enumerate().filter(|(i, _)| *i != index).map(|(_, t)| t.clone()).collect();
        Some(Self {
            diagnosis: diagnosis.to_owned(),
            node: node.name().to_owned(),
            version: version.to_owned(),
            patch: serde_json::from_value(patch).ok()?,
            taint: taint.to_string(),
            before: listed(&node.spec.taints),
            after: listed(&left),
            dry_run,
            rests_on: Vec::new(),
        })
    }

    /// Adds the objects that the guards have read beside the Node.
    pub(super) fn resting_on(mut self, claim: Option<&NodeClaim>, pool: Option<&NodePool>) -> Self {
        self.rests_on = claim.map(Witness::of_claim).into_iter().chain(pool.map(Witness::of_pool)).collect();
        self
    }
}

/// The taint as the API server keeps it: empty fields are left out.
fn written(taint: &Taint) -> Value {
    let mut fields = json!({ "key": taint.key.as_str(), "effect": taint.effect.as_str() });
    if !taint.value.is_empty() {
        fields["value"] = json!(taint.value.as_str());
    }
    if let Some(at) = taint.time_added {
        fields["timeAdded"] = json!(at.to_rfc3339_opts(SecondsFormat::Secs, true));
    }
    fields
}
