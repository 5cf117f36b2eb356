//! No pod can start on the Node, because the image of the pause container cannot be pulled.

use super::{Rule, pull};
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::cni;
use crate::finding::{Finding, Opinion, saw};
use crate::gate::{Sandbox, refused_sandbox};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "SandboxImagePullFails",
    summary: "No pod can start on the Node: the image of the pause container cannot be pulled",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::Events],
    versions: "all",
    page: include_str!("../../docs/causes/SandboxImagePullFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let waits_for_pods = case.wait.evidence.object.starts_with("Event Pod/");
    if cni::not_ready(node).is_none() && !(node.is_ready() && (waits_for_pods || case.stage() == Stage::Initialize)) {
        return Opinion::Silent;
    }
    let refused = case.world.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Image));
    let Some(event) = refused.filter(|e| e.last_seen() >= Some(case.wait.since)).max_by_key(|e| e.last_seen()) else {
        return Opinion::Silent;
    };
    let pull = pull::explain(&event.message);
    let image = event.message.split('"').find(|part| part.contains("/pause") || part.contains("pause:")).unwrap_or("the pause image");
    let why = pull.map_or("it cannot be pulled", |p| p.why);
    let fix = pull.map_or("Let the Node pull the image.", |p| p.fix);
    Finding::new(
        if case.is_overdue() { Confidence::Certain } else { Confidence::Likely },
        format!("No pod can start on Node {} since {}: every pod needs the image {image}, and {why}.", node.name(), case.since()),
        saw(format!("Event Pod/{}", event.involved_object.name), "message", event.said(), "containerd makes no sandbox without its image"),
    )
    .blaming(match case.class() {
        Some(class) if why.contains("role") => Blame::object(&class.api_version, &class.kind, class.name()).field("spec.role"),
        _ => Blame::object("v1", "Node", node.name()),
    })
    .fix(fix)
    .step(
        Risk::Inspect,
        "See which pods wait for it",
        Some("kubectl get events -A --field-selector reason=FailedCreatePodSandBox".to_owned()),
    )
    .into()
}
