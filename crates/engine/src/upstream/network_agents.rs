//! The DaemonSets without which pods of a Node have no network, as their charts and manifests call them.

/// The agent that makes the API server's Service reachable on a Node.
pub const KUBE_PROXY: &str = "kube-proxy";

/// Network plugins. The likelier first: Calico and Cilium also run beside another plugin, for policies only.
pub const PLUGINS: &[&str] =
    &["aws-node", "cilium", "calico-node", "antrea-agent", "kube-flannel-ds", "weave-net", "kube-router"];

/// How likely a DaemonSet of this name is the network plugin: the lowest is the likeliest.
pub fn rank(name: &str) -> Option<usize> {
    PLUGINS.iter().position(|plugin| *plugin == name)
}

/// Whether the pods of a Node need it all the time.
pub fn serves_pods(name: &str) -> bool {
    name == KUBE_PROXY || rank(name).is_some()
}
