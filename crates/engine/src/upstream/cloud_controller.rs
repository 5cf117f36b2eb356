//! The traces that the cloud controller leaves on a Node, and that neither the kubelet nor Karpenter leaves.
//!
//! Not among them: `topology.kubernetes.io/zone` and `node.kubernetes.io/instance-type` (Karpenter copies them from the
//! NodeClaim), `spec.providerID` (the EKS bootstrap sets it), `k8s.io/cloud-provider-aws` (the tagging controller: it
//! proves only that the cloud controller is alive; terraform-aws-eks#2754 has it beside the taint).

use crate::objects::{ManagedField, Node};

/// k8s.io/cloud-provider v0.36.3 controllers/node/node_controller.go `getNodeModifiersFromCloudProvider`: set in the
/// one update that also removes the taint.
const LABELS: [&str; 3] = [
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// Those of them that the Node carries.
pub fn labels(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    LABELS.into_iter().filter_map(|key| Some((key, node.metadata.label(key)?)))
}

/// Whether the Node carries a label of the one update that also removes the taint.
pub fn has_labelled(node: &Node) -> bool {
    labels(node).any(|(_, value)| !value.is_empty())
}

/// UpdateNodeStatus writes these; it skips Nodes that were never initialized.
const ADDRESSES: [&str; 2] = ["InternalDNS", "ExternalDNS"];

/// The addresses of the Node that the kubelet does not write.
pub fn addresses(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    ADDRESSES.into_iter().filter_map(|type_| Some((type_, node.address(type_)?)))
}

/// Whether the Node has an address that the kubelet does not write.
pub fn has_addressed(node: &Node) -> bool {
    addresses(node).next().is_some()
}

/// Who wrote `spec.taints` last: the list is atomic, so one manager owns it whole.
pub fn last_taint_writer(node: &Node) -> Option<&ManagedField> {
    node.metadata.managed_fields.0.iter().filter(|f| f.owns_taints).max_by_key(|f| f.time)
}
