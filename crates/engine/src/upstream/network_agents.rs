//! The DaemonSets without which pods of a Node have no network, and the Deployments that serve them, as their charts
//! and manifests call them.

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

/// The DaemonSet that installs a plugin: mostly it has the plugin's name.
/// Sources: amazon-vpc-cni-k8s v1.20.4 misc/10-aws.conflist; cilium v1.17.3 plugins/cilium-cni; calico v3.29.2
/// cni-plugin; istio 1.26 manifests/charts/istio-cni; multus-cni v4.2.0 deployments; flannel v0.27.0 Documentation.
pub fn of_plugin(plugin: &str) -> &str {
    match plugin {
        "aws-cni" | "egress-cni" => "aws-node",
        "cilium-cni" => "cilium",
        "calico" | "calico-ipam" => "calico-node",
        "istio-cni" => "istio-cni-node",
        "multus" | "multus-shim" => "kube-multus-ds",
        "flannel" => "kube-flannel-ds",
        "antrea" => "antrea-agent",
        other => other,
    }
}

/// The DaemonSet whose plugin refuses a pod its network.
/// Source: containernetworking/cni v1.3.0 libcni/api.go `pluginDescription`.
pub fn that_refuses(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" failed (add)")?;
    let (_, plugin) = before.split_once("plugin type=")?;
    plugin.trim_start_matches(['\\', '"']).split(['\\', '"', ' ']).next().map(of_plugin)
}

/// A Deployment without which no pod of the agent becomes Ready.
pub struct Server {
    agent: &'static str,
    pub deployment: &'static str,
    /// What the agent does with it, before its name.
    pub uses: &'static str,
}

const SERVERS: &[Server] = &[
    // cilium v1.17.3 Documentation/internals/cilium_operator.rst.
    Server { agent: "cilium", deployment: "cilium-operator", uses: "gets its addresses and resources from" },
    // calico v3.29.2 typha/README.md.
    Server { agent: "calico-node", deployment: "calico-typha", uses: "reads the API server through" },
    // antrea v2.2.0 docs/design/architecture.md.
    Server { agent: "antrea-agent", deployment: "antrea-controller", uses: "gets its policies from" },
];

pub fn server_of(agent: &str) -> Option<&'static Server> {
    SERVERS.iter().find(|server| server.agent == agent)
}

/// The Deployments that serve the agents of all Nodes.
pub fn servers() -> impl Iterator<Item = &'static str> {
    SERVERS.iter().map(|server| server.deployment)
}
