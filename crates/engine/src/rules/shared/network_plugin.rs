//! Which DaemonSet sets up the Node's network.

use crate::case::Case;
use crate::objects::{DaemonSet, Node};

/// DaemonSets that are a network plugin, as their charts and manifests call them. The likelier first: Calico and Cilium
/// also run beside another plugin, for policies only.
const PLUGINS: &[&str] =
    &["aws-node", "cilium", "calico-node", "antrea-agent", "kube-flannel-ds", "weave-net", "kube-router"];

/// How likely a DaemonSet of this name is the network plugin: the lowest is the likeliest.
pub(crate) fn rank(name: &str) -> Option<usize> {
    PLUGINS.iter().position(|plugin| *plugin == name)
}

/// The DaemonSet that sets up the Node's network.
pub(crate) fn plugin<'c>(case: &Case<'c>, node: &Node) -> Option<&'c DaemonSet> {
    let fitting = case.cluster.daemon_sets().filter(|d| is_for(d, node));
    fitting.filter_map(|d| Some((rank(&d.metadata.name)?, d))).min_by_key(|(rank, _)| *rank).map(|(_, d)| d)
}

/// Windows, Auto Mode and hybrid Nodes have no aws-node pod: its manifest's node affinity leaves them out.
/// Source: amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml.
fn is_for(set: &DaemonSet, node: &Node) -> bool {
    let selected = set.spec.template.spec.node_selector.iter().all(|(k, v)| node.metadata.label(k) == Some(v.as_str()));
    let compute = node.metadata.label("eks.amazonaws.com/compute-type");
    let foreign = is_windows(node) || compute.is_some_and(|c| matches!(c, "auto" | "fargate" | "hybrid"));
    selected && !(foreign && set.metadata.name == "aws-node")
}

pub(crate) fn is_windows(node: &Node) -> bool {
    node.metadata.label("kubernetes.io/os") == Some("windows") || node.status.node_info.operating_system == "windows"
}
