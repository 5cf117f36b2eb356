//! The kubelet itself says why its Node is not Ready, and it is not the network.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::objects::Node;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::instance_questions::ask_the_instance;
use crate::rules::shared::repair;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "KubeletNotReady",
    summary: "The kubelet reports its Node as not Ready: container runtime, pod lifecycle or CSINode",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Events, Input::Deployments, Input::AwsObservations],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KubeletNotReady.md"),
    check,
};

/// Part of the message, what it means, what to do.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go, nodestatus/setters.go, volume/csi/csi_plugin.go.
const REPORTS: &[(&str, &str, &str)] = &[
    (
        "PLEG is not healthy",
        "it cannot list its containers in time",
        "Look for too many pods, a slow disk or a hanging container runtime; replace the instance.",
    ),
    (
        "container runtime is down",
        "containerd does not answer",
        "Look at containerd on the instance; replace it if it does not come back.",
    ),
    (
        "status check may not have completed",
        "containerd has not answered since the kubelet started",
        "Look at containerd on the instance: a user-given configuration that it refuses, or a socket elsewhere.",
    ),
    (
        "RuntimeReady=false",
        "containerd is not ready",
        "Look at containerd on the instance; replace it if it does not come back.",
    ),
    ("CSINode", "it cannot write its CSINode object", "See why the API server refuses or does not answer the kubelet."),
    (
        "missing node capacity",
        "it cannot read the machine's resources",
        "Look at the kubelet's log; replace the instance.",
    ),
];

const PRESSURES: [(&str, &str); 3] = [
    ("MemoryPressure", "the machine is short of memory"),
    ("DiskPressure", "its disk is nearly full"),
    ("PIDPressure", "it is out of process ids"),
];

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = node.condition("Ready").filter(|c| c.is_false() && !c.message.is_empty()) else {
        return Opinion::Silent;
    };
    if vpc_cni::not_ready(node).is_some() {
        return Opinion::Silent;
    }
    let report = REPORTS.iter().find(|(text, ..)| ready.message.contains(text));
    let meaning = report.map_or_else(String::new, |(_, meaning, _)| format!("{meaning} "));
    let pressed: Vec<_> = pressures(node).collect();
    let also = pressed.first().map_or_else(String::new, |(_, what)| format!("; {what}"));
    let said = ready.said();
    let said = said.trim_end_matches('.');
    let quoted = if meaning.is_empty() { said.to_owned() } else { format!("{meaning}({said})") };
    let finding =
        Finding::new(
            // What the kubelet misses it says; why it is missing is on the machine.
            Confidence::Likely,
            format!(
                "Node {} has been {} since {}, and its kubelet says why: {quoted}{also}.",
                node.name(),
                if case.wait.symptom == Symptom::ByTurns { "Ready and NotReady by turns" } else { "NotReady" },
                case.since()
            ),
            Evidence::new(
                format!("Node/{}", node.name()),
                r#"status.conditions[?(@.type=="Ready")]"#,
                ready.shown(),
                "the kubelet's own words",
            ),
        )
        .with_all(pressed.iter().map(|(type_, what)| {
            Evidence::new(
                format!("Node/{}", node.name()),
                format!(r#"status.conditions[?(@.type=="{type_}")]"#),
                "True",
                *what,
            )
        }))
        .blaming(Blame::object("v1", "Node", node.name()))
        .fix(report.map_or(
            "Look at the instance for what the kubelet names; replace it if that does not pass.",
            |(.., fix)| fix,
        ))
        .step(
            Risk::Inspect,
            "See the Node's conditions and events",
            Some(format!("kubectl describe node {}", node.name())),
        );
    let finding = repair::or_replace(case, finding);
    repair::who_replaces(case, ask_the_instance(case, finding)).into()
}

fn pressures(node: &Node) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    PRESSURES.iter().filter(|(type_, _)| node.condition(type_).is_some_and(crate::objects::Condition::is_true))
}
