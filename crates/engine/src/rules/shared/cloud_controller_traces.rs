//! What the cloud controller has left of itself on a Node, as evidence.

use crate::api::Evidence;
use crate::cluster_state::ClusterState;
use crate::objects::Node;
use crate::upstream::cloud_controller;

/// What shows that the cloud controller has initialized this Node.
pub(crate) fn traces(cluster: &ClusterState, node: &Node) -> Vec<Evidence> {
    let object = format!("Node/{}", node.name());
    let labels = cloud_controller::labels(node).map(|(key, value)| {
        let because = "only the cloud controller sets this label, in the update that removes the taint";
        Evidence::new(&object, format!("metadata.labels['{key}']"), value, because)
    });
    let addresses = cloud_controller::addresses(node).map(|(type_, address)| {
        let because = "only the cloud controller writes this kind of address";
        Evidence::new(&object, "status.addresses", format!("{type_} {address}"), because)
    });
    let synced = cluster
        .events("Node", node.name())
        .filter(|e| e.reason == "Synced" && e.reporter() == "cloud-node-controller")
        .map(|e| {
            Evidence::new(
                format!("Event/{}", e.metadata.name),
                "message",
                e.said(),
                "the cloud controller says that it has initialized the Node",
            )
        });
    labels.chain(addresses).chain(synced).collect()
}
