//! kube-proxy does not run on the Node, so the network plugin cannot reach the API server's Service.

use crate::explain::agent_chain::{cannot_be_set_up, of_pod, without_pod};
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::network_plugin::{KUBE_PROXY, rank, symptom};
use crate::objects::{Condition, Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;

rule! {
    cause: KubeProxyNotRunning,
    summary: "kube-proxy fails on the Node, so the network plugin cannot reach the API server and the Node stays \
              NotReady",
    stages: [Initialize, Ready],
    reads: [MutatingWebhooks, ValidatingWebhooks, Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let ready = vpc_cni::not_ready(node)?;
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(KUBE_PROXY)) else { return without(case, node, ready) };
    if pod.is_ready() {
        return Some(Opinion::ruled_out(pod, format!("kube-proxy runs on Node {}", node.name())));
    }
    if pod.trouble().is_none() && pod.unscheduled().is_none() && !hangs_alone(case, node, pod) {
        return None;
    }
    found(case, node, ready, of_pod(case, node, pod))
}

/// A reason of kube-proxy's own keeps its containers from starting: the network plugin's started and need it.
fn hangs_alone(case: &Case, node: &Node, pod: &Pod) -> bool {
    let starts = |p: &Pod| p.daemon_set().and_then(rank).is_some() && !cannot_be_set_up(case, node, p);
    cannot_be_set_up(case, node, pod) && case.pods().any(starts)
}

/// kube-proxy has no pod there. Only the reason that keeps it away proves this, since a plugin can replace kube-proxy.
fn without(case: &Case, node: &Node, ready: &Condition) -> Option<Opinion> {
    let fails = |p: &Pod| p.daemon_set() == Some(vpc_cni::AWS_NODE) && !p.is_ready();
    if !case.pods().any(fails) {
        return None;
    }
    let explanation = without_pod(case, node, KUBE_PROXY);
    match explanation.proof {
        Proof::Settled => found(case, node, ready, explanation),
        Proof::Lasting | Proof::Open | Proof::None => None,
    }
}

fn found(case: &Case, node: &Node, ready: &Condition, explanation: Explanation) -> Option<Opinion> {
    let summary = format!(
        "Node {} has been NotReady since {} because kube-proxy does not run there: {}. Without kube-proxy the network \
         plugin cannot reach the API server.",
        node.name(),
        case.since(),
        explanation.why.trim_end_matches('.')
    );
    let (object, says) =
        explanation.links.first().map(|link| (link.object.clone(), link.says.clone())).unwrap_or_default();
    let evidence =
        Evidence::new(object, "status", says, "kube-proxy makes the Service kubernetes.default reachable on the node");
    let symptom = symptom(node, ready);
    explanation.found(case, summary, evidence, symptom).into()
}
