//! The API server's address for plugins that replace kube-proxy.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::network_plugin::KUBE_PROXY;
use crate::facts::placement;
use crate::objects::input::Input;
use crate::objects::{Node, Pod};

/// A plugin that replaces kube-proxy needs the API server's own address. If kube-proxy is kept off the Node by design,
/// nothing else makes the Service reachable for `program` and its pod: the agent, or a Deployment that serves it.
pub(super) fn without_kube_proxy(
    case: &Case,
    node: &Node,
    agent: &Agent,
    (program, pod): (&str, &Pod),
) -> Option<Explanation> {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *KUBE_PROXY);
    let by_design = match set {
        Some(set) => placement::refusal(set, node).filter(|kept| kept.taint.is_none())?.why,
        None if case.cluster.missing(Input::DaemonSets).is_none() => format!("DaemonSet {KUBE_PROXY} is not installed"),
        None => return None,
    };
    // Calico: docs.tigera.io "Enable the eBPF data plane"; Cilium: docs.cilium.io "Kubernetes Without kube-proxy";
    // Antrea: antrea v1.13 docs/antrea-ipam.md.
    let (blame, fix) = match agent.set {
        "calico-node" => (
            Blame::object("v1", "ConfigMap", "kubernetes-services-endpoint").namespace(match agent.namespace {
                "calico-system" => "tigera-operator",
                other => other,
            }),
            "Give Calico the API server's own address before you remove kube-proxy: ConfigMap \
             kubernetes-services-endpoint with KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT. Then restart its \
             pods."
                .to_owned(),
        ),
        "cilium" => (
            agent.in_spec("containers"),
            "Give Cilium the API server's own address (Helm: k8sServiceHost and k8sServicePort), or run kube-proxy."
                .to_owned(),
        ),
        "antrea-agent" => (
            Blame::object("v1", "ConfigMap", "antrea-config").namespace(agent.namespace),
            format!(
                "Give {program} the API server's own address (kubeAPIServerOverride in {program}.conf of ConfigMap \
                 antrea-config) and restart its pods, or run kube-proxy."
            ),
        ),
        _ => return None,
    };
    let why = format!(
        "no pod of kube-proxy runs on the node ({by_design}), and without kube-proxy {program} needs the API server's \
         own address"
    );
    let object = blame.object.clone();
    let describe = format!("kubectl describe pod -n {} {}", agent.namespace, pod.metadata.name);
    Some(
        Explanation::new(Proof::Open, why, blame, Link::new(format!("DaemonSet/{KUBE_PROXY}"), by_design))
            .behind(Link::new(object, format!("{program} would find the API server's own address there")))
            .fix(fix)
            .inspect("See what the pod reports", describe),
    )
}
