//! The traces that the cloud controller leaves on a Node, and that neither the kubelet nor Karpenter leaves.
//!
//! Not among them: `topology.kubernetes.io/zone` and `node.kubernetes.io/instance-type` (Karpenter copies them from the
//! NodeClaim), `spec.providerID` (the EKS bootstrap sets it), `k8s.io/cloud-provider-aws` (the tagging controller: it
//! proves only that the cloud controller is alive; terraform-aws-eks#2754 has it beside the taint).

use crate::objects::{CLOUD_LABELS, ManagedField, Node};

/// The cloud controller's manager name in `managedFields`: its program's name, with which its user agent begins.
/// Source: k8s.io/apiserver v0.36.3 pkg/endpoints/handlers/create.go `managerOrUserAgent`, k8s.io/client-go v0.36.3
/// rest/config.go `DefaultKubernetesUserAgent`, kubernetes/cloud-provider-aws cmd/aws-cloud-controller-manager.
const MANAGER: &str = "aws-cloud-controller-manager";

/// The labels of the one update that also removes the taint, those that the Node carries. Others can set them too: a
/// NodePool's template, `--node-labels`, whoever may label Nodes.
pub fn labels(node: &Node) -> impl Iterator<Item = (&'static str, &str)> {
    CLOUD_LABELS.into_iter().filter_map(|key| Some((key, node.metadata.label(key)?)))
}

/// Whether the Node carries such a label, whoever set it.
pub fn is_labelled(node: &Node) -> bool {
    labels(node).any(|(_, value)| !value.is_empty())
}

/// The writers of a label of [`labels`], from `managedFields`. `kubectl get -o yaml` omits those fields.
pub fn writers<'n>(node: &'n Node, label: &str) -> impl Iterator<Item = &'n ManagedField> {
    node.metadata.managed_fields.0.iter().filter(move |field| field.owns_label(label))
}

/// Whether the Node carries a label that the cloud controller wrote: it never owns one that it found as it is.
pub fn has_labelled(node: &Node) -> bool {
    labels(node).any(|(key, value)| !value.is_empty() && writers(node, key).any(|field| field.manager == MANAGER))
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

/// The last writer of `spec.taints`. The list is atomic, so one manager owns it whole.
pub fn last_taint_writer(node: &Node) -> Option<&ManagedField> {
    node.metadata.managed_fields.0.iter().filter(|f| f.owns_taints).max_by_key(|f| f.time)
}
