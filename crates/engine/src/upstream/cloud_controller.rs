//! The traces that the cloud controller leaves on a Node, and that neither the kubelet nor Karpenter leaves.
//!
//! Not among them: `topology.kubernetes.io/zone` and `node.kubernetes.io/instance-type` (Karpenter copies them from the NodeClaim),
//! `spec.providerID` (the EKS bootstrap sets it), `k8s.io/cloud-provider-aws` (the tagging controller: it proves only that the
//! cloud controller is alive; terraform-aws-eks#2754 has it beside the taint).

use crate::api::Evidence;
use crate::case::finding::Finding;
use crate::cluster_state::ClusterState;
use crate::objects::{ManagedField, Node};

/// k8s.io/cloud-provider v0.36.3 controllers/node/node_controller.go `getNodeModifiersFromCloudProvider`: set in the one update
/// that also removes the taint.
const LABELS: [&str; 3] =
    ["beta.kubernetes.io/instance-type", "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"];

/// Whether the Node carries a label of the one update that also removes the taint.
#[must_use]
pub fn has_labelled(node: &Node) -> bool {
    LABELS.iter().any(|key| node.metadata.label(key).is_some_and(|value| !value.is_empty()))
}

/// UpdateNodeStatus writes these; it skips Nodes that were never initialized.
const ADDRESSES: [&str; 2] = ["InternalDNS", "ExternalDNS"];

/// Whether the Node has an address that the kubelet does not write.
#[must_use]
pub fn has_addressed(node: &Node) -> bool {
    ADDRESSES.iter().any(|type_| node.address(type_).is_some())
}

/// What shows that the cloud controller has initialized this Node.
#[must_use]
pub fn traces(cluster: &ClusterState, node: &Node) -> Vec<Evidence> {
    let object = format!("Node/{}", node.name());
    let labels = LABELS.iter().filter_map(|key| {
        let value = node.metadata.label(key)?;
        Some(Evidence::new(
            &object,
            format!("metadata.labels['{key}']"),
            value,
            "only the cloud controller sets this label, in the update that removes the taint",
        ))
    });
    let addresses = ADDRESSES.iter().filter_map(|type_| {
        let address = node.address(type_)?;
        Some(Evidence::new(
            &object,
            "status.addresses",
            format!("{type_} {address}"),
            "only the cloud controller writes this kind of address",
        ))
    });
    let synced = cluster.events("Node", node.name()).filter(|e| e.reason == "Synced" && e.reporter() == "cloud-node-controller").map(|e| {
        Evidence::new(
            format!("Event/{}", e.metadata.name),
            "message",
            e.said(),
            "the cloud controller says that it has initialized the Node",
        )
    });
    labels.chain(addresses).chain(synced).collect()
}

/// Who wrote `spec.taints` last: the list is atomic, so one manager owns it whole.
#[must_use]
pub fn last_taint_writer(node: &Node) -> Option<&ManagedField> {
    node.metadata.managed_fields.0.iter().filter(|f| f.owns_taints).max_by_key(|f| f.time)
}

/// Adds who wrote the taint list last, or the question.
#[must_use]
pub fn naming_last_taint_writer(finding: Finding, node: &Node) -> Finding {
    let command = format!("kubectl get node {} --show-managed-fields -o yaml", node.name());
    match last_taint_writer(node) {
        Some(writer) => finding.with(Evidence::new(
            format!("Node/{}", node.name()),
            "metadata.managedFields",
            format!("f:taints owned by {}", writer.manager),
            "the newest owner of the list wrote it last",
        )),
        None => finding.unknown("Who wrote the taint list last?", command),
    }
}
