//! kube-proxy does not run on the Node, so the network plugin cannot reach the API server's Service.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::cni;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "KubeProxyNotRunning",
    summary: "kube-proxy fails on the Node, so the network plugin cannot reach the API server and the Node stays NotReady",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::Pods],
    versions: "all",
    page: include_str!("../../docs/causes/KubeProxyNotRunning.md"),
    check,
};

const KUBE_PROXY: &str = "kube-proxy";

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|n| cni::not_ready(n).is_some()) else { return Opinion::Silent };
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(KUBE_PROXY)) else { return Opinion::Silent };
    if pod.is_ready() {
        return Opinion::RuledOut(format!("kube-proxy runs on Node {}", node.name()));
    }
    let Some((container, why)) = pod.trouble() else { return Opinion::Silent };
    let name = &pod.metadata.name;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    // While the machine starts, a first failure may pass.
    let confidence = if case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    Finding::new(
        confidence,
        format!(
            "Node {} has been NotReady since {} because kube-proxy does not run there ({container}: {why}): without it the network plugin cannot reach the API server.",
            node.name(),
            case.since()
        ),
        saw(format!("Pod/{name}"), "status.containerStatuses", format!("{container}: {why}"), "kube-proxy makes the Service kubernetes.default reachable on the Node"),
    )
    .blaming(Blame::object("apps/v1", "DaemonSet", KUBE_PROXY).namespace(namespace))
    .fix("Mend kube-proxy first (its image and version fit the cluster's); the network plugin follows by itself.")
    .step(Risk::Inspect, "See why it fails", Some(format!("kubectl describe pod -n {namespace} {name}")))
    .into()
}
