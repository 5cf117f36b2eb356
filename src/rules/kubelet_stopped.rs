//! The kubelet no longer reports, or never did.

use super::unknown::ask_the_instance;
use super::{Rule, repair};
use crate::api::{Blame, Confidence, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::foreign::{Condition, Event};
use crate::input::Input;
use chrono::TimeDelta;

pub static RULE: Rule = Rule {
    cause: "KubeletStopped",
    summary: "The kubelet stopped posting the Node's status, or never posted it",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::Events, Input::Deployments],
    versions: "all",
    page: include_str!("../../docs/causes/KubeletStopped.md"),
    check,
};

/// Between the kernel's last kill and the node controller's verdict: a machine that thrashes may renew its Lease for some time yet.
const AFTER_OOM: TimeDelta = TimeDelta::minutes(15);

/// The kernel killed processes for want of memory right before the kubelet fell silent.
/// Source: kubernetes v1.36.3 `pkg/kubelet/oom/oom_watcher_linux.go`.
fn out_of_memory<'w>(case: &Case<'w>, ready: &Condition) -> Option<&'w Event> {
    let silent = ready.last_transition_time?;
    let before = |e: &&Event| e.last_seen().is_some_and(|at| at <= silent && silent - at <= AFTER_OOM);
    case.events().filter(|e| e.reason == "SystemOOM").find(before)
}

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = node.condition("Ready") else { return Opinion::Silent };
    // Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`.
    let what = match ready.reason.as_str() {
        "NodeStatusUnknown" => format!("has posted no status since {}", case.since()),
        "NodeStatusNeverUpdated" => "has never posted a status".to_owned(),
        _ => return Opinion::RuledOut(format!("the kubelet of Node {} posts its status", node.name())),
    };
    let oom = out_of_memory(case, ready);
    let why = match oom {
        Some(event) => format!("right before, the machine ran out of memory ({}).", event.said().trim_end_matches('.')),
        None => "the instance is gone, hangs, or has lost the API server.".to_owned(),
    };
    let summary = format!("The kubelet of Node {} {what}: {why}", node.name());
    let finding = Finding::new(
        Confidence::Likely,
        summary,
        saw(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "neither status nor Lease has been renewed, so the node controller speaks for the kubelet",
        ),
    )
    .blaming(Blame::object("v1", "Node", node.name()));
    let finding = match oom {
        Some(event) => finding
            .with(saw(
                format!("Event/{}", event.metadata.name),
                "reason",
                format!("SystemOOM, {} times", event.times()),
                "the kernel killed processes, and what it spared may be stuck",
            ))
            .fix("Reserve memory for the system (kubeReserved, systemReserved, evictionHard) and give the pods memory limits; then replace the instance."),
        None => finding.fix("Look at the instance: out of memory, disk or network are the usual reasons. Replace it if it does not come back."),
    };
    repair::who_replaces(case, ask_the_instance(case, finding)).into()
}
