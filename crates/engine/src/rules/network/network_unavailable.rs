//! The Node is Ready, but its network plugin reports its network unavailable, so the control plane taints it.

use crate::explain::agent_chain::{of_pod, without_pod};
use crate::facts::network_plugin;
use crate::objects::{Condition, Node};
use crate::rules::prelude::*;

rule! {
    cause: NetworkUnavailable,
    summary: "The Node is Ready, but its network plugin reports that it has no network",
    stages: [Ready],
    reads: [Nodes, NodeClasses, Events, Pods, DaemonSets, MutatingWebhooks, ValidatingWebhooks, Logs],
    versions: "all, with Calico; with other plugins if something sets the condition",
}

/// Only Calico clears the condition; the other plugins only set it to False once the network works.
/// Sources: calico v3.30 node/pkg/lifecycle/utils/utils.go `SetNodeNetworkUnavailableCondition`; cilium v1.17
/// operator/watchers/node_taint.go; flannel v0.27 pkg/subnet/kube/kube.go.
const OF_CALICO: (&str, &str) = ("Calico", "calico-node");

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::NetworkUnavailable)?;
    let condition = node.condition("NetworkUnavailable")?;
    let writer = condition.reason.starts_with(OF_CALICO.0).then_some(OF_CALICO.1);
    let set = writer.or_else(|| network_plugin::plugin(case, node).map(|set| &*set.metadata.name));
    let head =
        format!("Node {} is Ready, but since {} its condition NetworkUnavailable is True", node.name(), case.since());
    let Some(set) = set else {
        let summary = format!("{head} ({}); no network plugin that nodewhy knows sets it.", condition.shown());
        return left_over(node, summary, case.wait.evidence.clone());
    };
    let pod = case.pods().find(|pod| pod.daemon_set() == Some(set));
    let installed = case.cluster.daemon_sets().any(|other| other.metadata.name == *set);
    let nobody = pod.is_none() && !installed && case.cluster.missing(Input::DaemonSets).is_none();
    if nobody && case.cluster.missing(Input::Pods).is_none() {
        let summary = format!("{head} ({}); DaemonSet {set}, which would clear it, is gone.", condition.shown());
        return left_over(node, summary, case.wait.evidence.clone());
    }
    let explanation = match pod {
        Some(pod) => of_pod(case, node, pod),
        None => without_pod(case, node, set),
    };
    let summary = format!("{head} because of its plugin {set}: {}.", explanation.why.trim_end_matches('.'));
    explanation.found(case, summary, case.wait.evidence.clone(), symptom(node, condition)).into()
}

fn symptom(node: &Node, condition: &Condition) -> Link {
    Link::new(format!("Node/{}", node.name()), format!("NetworkUnavailable: {}", condition.shown()))
}

/// The condition that a removed plugin left behind.
fn left_over(node: &Node, summary: String, evidence: Evidence) -> Option<Opinion> {
    let name = node.name();
    Finding::new(Confidence::Likely, summary, evidence)
        .blaming(Blame::object("v1", "Node", name).field("status.conditions"))
        .fix(
            "Replace the node, which evicts its pods. Or clear the condition by hand once the current network plugin \
             works there.",
        )
        .inspect(
            "See which component wrote the condition",
            format!("kubectl get node {name} -o yaml --show-managed-fields"),
        )
        .into()
}
