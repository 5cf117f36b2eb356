//! kube-proxy does not run on the Node, so the network plugin cannot reach the API server's Service.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{Node, Pod};
use crate::rules::Rule;
use crate::rules::shared::commands;
use crate::rules::shared::pull;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "KubeProxyNotRunning",
    summary: "kube-proxy fails on the Node, so the network plugin cannot reach the API server and the Node stays NotReady",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KubeProxyNotRunning.md"),
    check,
};

const KUBE_PROXY: &str = "kube-proxy";

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|n| vpc_cni::not_ready(n).is_some()) else { return Opinion::Silent };
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(KUBE_PROXY)) else { return without_pod(case, node) };
    if pod.is_ready() {
        return Opinion::ruled_out(pod, format!("kube-proxy runs on Node {}", node.name()));
    }
    let Some((container, why)) = pod.trouble() else { return Opinion::Silent };
    let name = &pod.metadata.name;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    // While the machine starts, a first failure may pass.
    let confidence = if case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    let pull = pull::explain(&why);
    let meaning = pull.map_or_else(String::new, |p| format!("; {}", p.why));
    Finding::new(
        confidence,
        format!(
            "Node {} has been NotReady since {} because kube-proxy does not run there ({container}: {why}{meaning}): {EFFECT}.",
            node.name(),
            case.since()
        ),
        Evidence::new(format!("Pod/{name}"), "status.containerStatuses", format!("{container}: {why}"), BECAUSE),
    )
    .blaming(Blame::object("apps/v1", "DaemonSet", KUBE_PROXY).namespace(namespace))
    .fix(
        pull.map_or("Get kube-proxy running first, with an image of the cluster's version; the network plugin follows by itself.", |p| {
            p.fix
        }),
    )
    .step(Risk::Inspect, "See why it fails", Some(format!("kubectl describe pod -n {namespace} {name}")))
    .into()
}

const EFFECT: &str = "without it the network plugin cannot reach the API server";
const BECAUSE: &str = "kube-proxy makes the Service kubernetes.default reachable on the Node";

/// No pod there: only what keeps it away tells, since a plugin can replace kube-proxy.
fn without_pod(case: &Case, node: &Node) -> Opinion {
    let fails = |p: &Pod| p.daemon_set() == Some(vpc_cni::AWS_NODE) && !p.is_ready();
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == KUBE_PROXY);
    let Some((set, pod)) = set.zip(case.pods().find(|p| fails(p))) else { return Opinion::Silent };
    let Some(taint) = node.spec.taints.iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t)) else {
        return Opinion::Silent;
    };
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    Finding::new(
        Confidence::Certain,
        format!(
            "Node {} has been NotReady since {} because DaemonSet {KUBE_PROXY} does not tolerate the Node's taint {taint}: {EFFECT}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            format!("Node/{}", node.name()),
            "spec.taints",
            taint.to_string(),
            format!("DaemonSet {KUBE_PROXY} has no toleration for it"),
        ),
    )
    .with(Evidence::new(format!("Pod/{}", pod.metadata.name), "status.phase", pod.status.phase.clone(), BECAUSE))
    .blaming(Blame::object("apps/v1", "DaemonSet", KUBE_PROXY).namespace(namespace).field("spec.template.spec.tolerations"))
    .fix("Let kube-proxy tolerate every taint (operator: Exists), as its own manifests do.")
    .step(Risk::Mutating, "Add the toleration; the DaemonSet's pods restart", Some(commands::tolerate(set, taint)))
    .into()
}
