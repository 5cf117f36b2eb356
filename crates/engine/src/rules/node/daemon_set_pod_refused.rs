//! The pod that would make the Node usable is never made: a quota or an admission webhook refuses it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{DaemonSet, Event};
use crate::rules::Rule;
use crate::rules::shared::network_plugin;
use crate::rules::shared::startup_taints::{pod_of, staying};
use crate::upstream::startup_taint;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "DaemonSetPodRefused",
    summary: "The DaemonSet that the Node needs makes no pod: a quota or an admission webhook refuses it",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Events, Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/DaemonSetPodRefused.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some((set, needed_for)) = needed(case) else { return Opinion::Silent };
    let name = &set.metadata.name;
    if let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(name)) {
        return Opinion::ruled_out(pod, format!("DaemonSet {name} has a pod on Node {}", node.name()));
    }
    // Source: kubernetes v1.36.3 pkg/controller/controller_utils.go `FailedCreatePodReason`.
    let refusals = case.cluster.events("DaemonSet", name).filter(|e| e.reason == "FailedCreate" && of(e, set));
    let since_node = refusals.filter(|e| e.last_seen() >= node.metadata.creation_timestamp);
    let Some(event) = since_node.max_by_key(|e| e.last_seen()) else {
        return Opinion::Silent;
    };
    let said = event.said();
    let said = said.trim().trim_end_matches('.');
    let said = said.strip_prefix("Error creating: ").unwrap_or(said);
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    let fix = if said.contains("quota") {
        "Raise the quota of the namespace, or keep the DaemonSet out of it: an exceeded quota refuses system pods too."
    } else if said.contains("webhook") {
        "Leave the DaemonSet's namespace out of the webhook, or get its service running: where it only runs on Nodes that wait for it, nothing ever starts."
    } else {
        "Let the admission that the message names admit the DaemonSet's pods."
    };
    Finding::new(
        Confidence::Certain,
        format!("{needed_for} Node {} needs a pod of DaemonSet {name}, and the API server refuses it: {said}.", node.name()),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the DaemonSet controller tries again with growing pauses",
        ),
    )
    .blaming(match webhook(said) {
        Some(webhook) => Blame::object("", "Webhook", webhook),
        None => Blame::object("apps/v1", "DaemonSet", name).namespace(namespace),
    })
    .fix(fix)
    .step(Risk::Inspect, "See the DaemonSet's events", Some(format!("kubectl describe daemonset -n {namespace} {name}")))
    .step(
        Risk::Inspect,
        "See quotas and webhooks",
        Some(format!(
            "kubectl get resourcequotas -n {namespace}; kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations"
        )),
    )
    .into()
}

/// The webhook that the API server names: `failed calling webhook "NAME"`, `admission webhook "NAME" denied the
/// request`.
/// Source: kubernetes v1.36.3 staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/errors/statuserror.go,
/// generic/webhook.go.
fn webhook(said: &str) -> Option<&str> {
    said.split_once("webhook \"").and_then(|(_, rest)| rest.split_once('"')).map(|(name, _)| name)
}

fn of(event: &Event, set: &DaemonSet) -> bool {
    event.involved_object.namespace.is_none()
        || event.involved_object.namespace.as_deref() == set.metadata.namespace.as_deref()
}

/// The DaemonSet without whose pod the Node stays as it is, and what for.
fn needed<'c>(case: &Case<'c>) -> Option<(&'c DaemonSet, &'static str)> {
    let node = case.node?;
    if vpc_cni::not_ready(node).is_some() {
        return Some((network_plugin::plugin(case, node)?, "To be Ready,"));
    }
    let (taint, _) = staying(case).filter(|_| node.is_ready())?;
    let owner = startup_taint::owner(taint)?;
    let set = case.cluster.daemon_sets().find(|d| owner.is(&d.metadata.name))?;
    pod_of(case, owner).is_none().then_some((set, "To lose its startup taint,"))
}
