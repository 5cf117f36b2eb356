//! The kubelet itself reports why its Node is not Ready, and the reason is not the network.

use crate::explain::instance_questions::ask_the_instance;
use crate::explain::repair;
use crate::objects::Node;
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;

rule! {
    cause: KubeletNotReady,
    summary: "The kubelet reports its Node as not Ready: container runtime, pod lifecycle or CSINode",
    stages: [Initialize, Ready],
    reads: [NodeClasses, Events, Deployments, AwsObservations],
    versions: "all",
}

/// Part of the message, its meaning, the fix.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go, nodestatus/setters.go, volume/csi/csi_plugin.go.
const REPORTS: &[(&str, &str, &str)] = &[
    (
        "PLEG is not healthy",
        "it cannot list its containers in time",
        "Look for too many pods, a slow disk or a hanging container runtime. Then replace the node, which evicts its \
         pods.",
    ),
    (
        "container runtime is down",
        "containerd does not answer",
        "Look at containerd on the node. Replace the node if containerd does not recover, which evicts its pods.",
    ),
    (
        "status check may not have completed",
        "containerd has not answered since the kubelet started",
        "Look at containerd on the node: it may reject a configuration of yours, or its socket may be in another \
         place.",
    ),
    (
        "RuntimeReady=false",
        "containerd is not ready",
        "Look at containerd on the node. Replace the node if containerd does not recover, which evicts its pods.",
    ),
    (
        "CSINode",
        "it cannot write its CSINode object",
        "Find out why the API server rejects the kubelet's request or does not answer.",
    ),
    (
        "missing node capacity",
        "it cannot read the node's resources",
        "Look at the kubelet's log. Then replace the node, which evicts its pods.",
    ),
];

const PRESSURES: [(&str, &str); 3] = [
    ("MemoryPressure", "the node is short of memory"),
    ("DiskPressure", "its disk is nearly full"),
    ("PIDPressure", "it is out of process ids"),
];

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let ready = node.condition("Ready").filter(|c| c.is_false() && !c.message.is_empty())?;
    if vpc_cni::not_ready(node).is_some() {
        return None;
    }
    let report = REPORTS.iter().find(|(text, ..)| ready.message.contains(text));
    let meaning = report.map_or_else(String::new, |(_, meaning, _)| format!("{meaning} "));
    let pressed: Vec<_> = pressures(node).collect();
    let also = pressed.first().map_or_else(String::new, |(_, what)| format!("; {what}"));
    let said = ready.said();
    let said = said.trim_end_matches('.');
    let quoted = if meaning.is_empty() { said.to_owned() } else { format!("{meaning}({said})") };
    let finding = Finding::new(
        // What the kubelet misses it says; why it is missing is on the machine.
        Confidence::Likely,
        format!(
            "Node {} has been {} since {}, and its kubelet reports the reason: {quoted}{also}.",
            node.name(),
            if case.wait.symptom == Symptom::ByTurns { "flapping between Ready and NotReady" } else { "NotReady" },
            case.since()
        ),
        Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "the kubelet's own message",
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
        "Look at the node for the problem that the kubelet names. Replace the node if the problem stays, which evicts \
         its pods.",
        |(.., fix)| fix,
    ))
    .inspect("See the Node's conditions and events", format!("kubectl describe node {}", node.name()));
    let finding = repair::or_replace(case, finding);
    repair::who_replaces(case, ask_the_instance(case, finding)).into()
}

fn pressures(node: &Node) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    PRESSURES.iter().filter(|(type_, _)| node.condition(type_).is_some_and(crate::objects::Condition::is_true))
}
