//! A kube-proxy that is too old for the API server: it runs, but writes no rules.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::kubelet_skew::minor;
use crate::facts::kubelet_version;
use crate::facts::network_plugin::{self, KUBE_PROXY};
use crate::objects::{Node, Pod};
use crate::upstream::karpenter::image_tag;

/// The first kube-proxy that asks for EndpointSlices as discovery.k8s.io/v1, and the first API server that has no
/// other. Sources: kubernetes v1.21.2 cmd/kube-proxy/app/server.go (`Discovery().V1beta1()`), v1.22.0
/// (`Discovery().V1()`); "Deprecated API Migration Guide", v1.25.
const ASKS_FOR_V1: u32 = 22;
const SERVES_V1_ONLY: u32 = 25;

pub(super) fn outdated_proxy(case: &Case, node: &Node, agent: &Agent, says: &str) -> Option<Explanation> {
    network_plugin::rank(agent.set)?;
    let proxy: &Pod = case.pods().find(|pod| pod.daemon_set() == Some(KUBE_PROXY))?;
    let image = proxy.spec.containers.first().map(|c| &*c.image)?;
    let tag = image_tag(image)?;
    // No kubelet is newer than its API server.
    let of_node = minor(&node.status.node_info.kubelet_version);
    let server = of_node.max(kubelet_version::of_cluster(case)).filter(|server| *server >= SERVES_V1_ONLY)?;
    minor(tag).filter(|own| *own < ASKS_FOR_V1)?;
    let namespace = proxy.metadata.namespace.as_deref().unwrap_or_default();
    let lists = format!(
        "kube-proxy {tag} asks for EndpointSlices as v1beta1, which Kubernetes 1.{server} does not serve, so it sets \
         up no Service on the node"
    );
    let blame =
        Blame::object("apps/v1", "DaemonSet", KUBE_PROXY).namespace(namespace).field("spec.template.spec.containers");
    let why = format!("pod {} fails: {says}; {lists}", agent.name);
    Some(
        Explanation::new(Proof::Lasting, why, blame, agent.link(says))
            .behind(Link::new(format!("Pod/{}", proxy.metadata.name), lists))
            .fix(format!(
                "Upgrade DaemonSet {KUBE_PROXY} (the add-on) to the version of the cluster. kube-proxy must not be \
                 more than three minor versions older than the API server. Its pods restart, which disrupts no \
                 workload."
            ))
            .inspect("See what it logs", format!("kubectl logs -n {namespace} {} --tail=50", proxy.metadata.name)),
    )
}
