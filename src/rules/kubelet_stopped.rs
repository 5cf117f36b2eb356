//! The kubelet no longer reports, or never did.

use super::Rule;
use super::unknown::ask_the_instance;
use crate::api::{Blame, Confidence, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "KubeletStopped",
    summary: "The kubelet stopped posting the Node's status, or never posted it",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes],
    versions: "all",
    page: include_str!("../../docs/causes/KubeletStopped.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = node.condition("Ready") else { return Opinion::Silent };
    // Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`.
    let what = match ready.reason.as_str() {
        "NodeStatusUnknown" => format!("stopped posting status {} ago", case.waited()),
        "NodeStatusNeverUpdated" => format!("has posted no status in {}", case.waited()),
        _ => return Opinion::RuledOut(format!("the kubelet of Node {} posts its status", node.name())),
    };
    let summary = format!("The kubelet of Node {} {what}: the instance is gone, hangs, or has lost the API server.", node.name());
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
    .blaming(Blame::object("v1", "Node", node.name()))
    .fix("Look at the instance: out of memory, disk or network are the usual reasons. Replace it if it does not come back.");
    ask_the_instance(case, finding).into()
}
