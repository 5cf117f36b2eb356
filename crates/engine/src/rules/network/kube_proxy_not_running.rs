//! kube-proxy does not run on the Node, so the network plugin cannot reach the API server's Service.

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::agent_chain::{cannot_be_set_up, of_pod, without_pod};
use crate::explain::explanation::{Explanation, Proof};
use crate::facts::network_plugin::{KUBE_PROXY, rank, symptom};
use crate::objects::input::Input;
use crate::objects::{Condition, Node, Pod};
use crate::rules::Rule;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "KubeProxyNotRunning",
    summary: "kube-proxy fails on the Node, so the network plugin cannot reach the API server and the Node stays \
              NotReady",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[
        Input::MutatingWebhooks,
        Input::ValidatingWebhooks,
        Input::Nodes,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::DaemonSets,
        Input::Logs,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KubeProxyNotRunning.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = vpc_cni::not_ready(node) else { return Opinion::Silent };
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(KUBE_PROXY)) else { return without(case, node, ready) };
    if pod.is_ready() {
        return Opinion::ruled_out(pod, format!("kube-proxy runs on Node {}", node.name()));
    }
    if pod.trouble().is_none() && pod.unscheduled().is_none() && !hangs_alone(case, node, pod) {
        return Opinion::Silent;
    }
    found(case, node, ready, of_pod(case, node, pod))
}

/// A reason of kube-proxy's own keeps its containers from starting: the network plugin's started and need it.
fn hangs_alone(case: &Case, node: &Node, pod: &Pod) -> bool {
    let starts = |p: &Pod| p.daemon_set().and_then(rank).is_some() && !cannot_be_set_up(case, node, p);
    cannot_be_set_up(case, node, pod) && case.pods().any(starts)
}

/// kube-proxy has no pod there. Only the reason that keeps it away proves this, since a plugin can replace kube-proxy.
fn without(case: &Case, node: &Node, ready: &Condition) -> Opinion {
    let fails = |p: &Pod| p.daemon_set() == Some(vpc_cni::AWS_NODE) && !p.is_ready();
    if !case.pods().any(fails) {
        return Opinion::Silent;
    }
    let explanation = without_pod(case, node, KUBE_PROXY);
    match explanation.proof {
        Proof::Settled => found(case, node, ready, explanation),
        Proof::Lasting | Proof::Open | Proof::None => Opinion::Silent,
    }
}

fn found(case: &Case, node: &Node, ready: &Condition, explanation: Explanation) -> Opinion {
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
