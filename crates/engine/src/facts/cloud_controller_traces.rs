//! The cloud controller's traces on a Node, as evidence.

use crate::api::Evidence;
use crate::case::Case;
use crate::objects::Node;
use crate::upstream::cloud_controller;

/// The proof that the cloud controller has initialized this Node. Only a label that it wrote proves that
/// (`cloud_controller::has_labelled`): anyone can send an Event, and an address does not show its writer.
pub(crate) fn traces(case: &Case, node: &Node) -> Vec<Evidence> {
    let object = format!("Node/{}", node.name());
    let signed = cloud_controller::has_labelled(node);
    let labels = cloud_controller::labels(node).filter(|(key, _)| signed || !has_another_origin(case, node, key));
    let labels = labels.map(|(key, value)| {
        let because = if signed {
            "the cloud controller sets this label in the update that removes the taint, and managedFields name it as \
             the writer"
        } else {
            "the cloud controller sets this label in the update that removes the taint, and nothing else here does; \
             managedFields do not show the writer"
        };
        Evidence::new(&object, format!("metadata.labels['{key}']"), value, because)
    });
    let addresses = cloud_controller::addresses(node).map(|(type_, address)| {
        let because = "only the cloud controller writes this kind of address";
        Evidence::new(&object, "status.addresses", format!("{type_} {address}"), because)
    });
    let synced = case
        .cluster
        .events("Node", node.name())
        .filter(|e| e.reason == "Synced" && e.reporter() == "cloud-node-controller")
        .map(|e| {
            Evidence::new(
                format!("Event/{}", e.metadata.name),
                "message",
                e.said(),
                "the cloud controller reports that it has initialized the Node",
            )
        });
    labels.chain(addresses).chain(synced).collect()
}

/// Whether a label is not the cloud controller's: another component wrote it, or the NodeClaim or userData sets it.
fn has_another_origin(case: &Case, node: &Node, key: &str) -> bool {
    cloud_controller::writers(node, key).next().is_some()
        || case.claim.is_some_and(|claim| claim.metadata.label(key).is_some())
        || case.user_data().is_some_and(|(text, _)| text.labels().iter().any(|(label, ..)| label == key))
}
