//! The DaemonSet that sets up the Node's network.

use crate::api::Link;
use crate::case::Case;
use crate::objects::input::Input;
use crate::objects::{Condition, DaemonSet, Node};
use crate::upstream::network_agents::PLUGINS;
pub(crate) use crate::upstream::network_agents::{KUBE_PROXY, of_plugin, rank};

/// Programs of the reference plugins, which several network plugins bring along.
/// Sources: containernetworking/plugins v1.7.1; amazon-vpc-cni-k8s v1.21.1 cmd/aws-vpc-cni-init/main.go.
const REFERENCE: [&str; 8] = ["bandwidth", "bridge", "firewall", "host-local", "loopback", "portmap", "ptp", "tuning"];

/// The DaemonSet that installs a plugin on this Node: a reference plugin comes with the one that sets up its network.
pub(crate) fn installer<'n>(case: &Case<'n>, node: &Node, of: &'n str) -> &'n str {
    let installed = REFERENCE.contains(&of).then(|| plugin(case, node)).flatten();
    installed.map_or_else(|| of_plugin(of), |set| &*set.metadata.name)
}

/// Plugins that only change what another has set up: they are chained after it.
/// Sources: linkerd2 charts/linkerd2-cni/templates/cni-plugin.yaml; istio 1.26 manifests/charts/istio-cni.
pub(crate) const CHAINED: [&str; 2] = ["linkerd-cni", "istio-cni"];

/// Those whose plugins ask the API server themselves, with a token that their pods write into the network's
/// configuration of the Node. The VPC CNI's and Cilium's ask the agent beside them.
/// Sources: istio 1.11 cni/pkg/install/kubeconfig.go; linkerd2 cni-plugin/deployment/scripts/install-cni.sh; calico
/// v3.29.2 cni-plugin/pkg/install/install.go; multus-cni v4.2.0 cmd/thin_entrypoint.
const WITH_A_TOKEN: [&str; 4] = ["calico-node", "istio-cni-node", "kube-multus-ds", "linkerd-cni"];

/// The DaemonSet whose plugin the API server rejects, if its message says no more than that.
pub(crate) fn turned_away<'c>(case: &Case<'c>, said: &str) -> Option<&'c DaemonSet> {
    let is_here = |set: &&DaemonSet| case.pods().any(|pod| pod.daemon_set() == Some(&set.metadata.name));
    let with_token = |set: &&DaemonSet| WITH_A_TOKEN.contains(&&*set.metadata.name);
    let mut sets = case.cluster.daemon_sets().filter(with_token).filter(is_here);
    // Of several it is open whose it was.
    let (set, None) = (sets.next()?, sets.next()) else { return None };
    said.trim_end_matches(['.', ']']).ends_with(": Unauthorized").then_some(set)
}

/// Pods in the host's network whatever their text says, because a network plugin needs it.
/// Source: eks-pod-identity-agent charts/eks-pod-identity-agent/templates/daemonset.yaml (hostNetwork).
const BEFORE_THE_NETWORK: [&str; 2] = [KUBE_PROXY, "eks-pod-identity-agent"];

/// Whether a DaemonSet needs no network of the Node to work.
pub(crate) fn is_before_the_network(set: &str) -> bool {
    rank(set).is_some() || BEFORE_THE_NETWORK.contains(&set)
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

/// The names of the DaemonSets that may be the Node's network plugin: the one that is there, or, where no DaemonSet
/// could be read, any.
pub(crate) fn names<'c>(case: &Case<'c>, node: &Node) -> Vec<&'c str> {
    match plugin(case, node) {
        Some(set) => vec![&set.metadata.name],
        None if case.cluster.missing(Input::DaemonSets).is_some() => PLUGINS.to_vec(),
        None => Vec::new(),
    }
}

/// The symptom, without the kubelet's words before those of the runtime.
pub(crate) fn symptom(node: &Node, ready: &Condition) -> Link {
    let said = ready.message.rsplit("message:").next().unwrap_or_default();
    Link::new(format!("Node/{}", node.name()), format!("NotReady: {}", said.trim()))
}

pub(crate) fn is_windows(node: &Node) -> bool {
    node.metadata.label("kubernetes.io/os") == Some("windows") || node.status.node_info.operating_system == "windows"
}
