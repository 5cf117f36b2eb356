//! A DRA driver that the machine's pods ask for has published nothing for the Node.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "DraDriverSilent",
    summary: "A DRA driver that pods asked for has published no complete pool of resources for the Node",
    stages: &[Stage::Initialize],
    reads: &[Input::Nodes, Input::Pods],
    versions: "Karpenter 1.14 and later with IGNORE_DRA_REQUESTS=false",
    page: include_str!("../../docs/causes/DraDriverSilent.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(node), Some(claim)) = (case.node.filter(|n| n.is_ready()), case.claim) else { return Opinion::Silent };
    // Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go (v1.14.1).
    let Some(waits) = claim.condition("Initialized").filter(|c| c.reason == "DRADriverPoolsNotPublished") else { return Opinion::Silent };
    let driver = waits.message.split('"').nth(1).unwrap_or("unknown");
    // Kubelet plugins of DRA drivers carry it in their name: nvidia-dra-driver-gpu-kubelet-plugin, neuron-dra-driver, dranet.
    let plugin = case.pods().filter(|p| !p.is_ready()).find(|p| p.daemon_set().is_some_and(|set| set.contains("dra")));
    let trouble = plugin.and_then(|p| Some((p, p.daemon_set()?, p.trouble()?)));
    let evidence = saw(
        case.subject(),
        r#"status.conditions[?(@.type=="Initialized")]"#,
        waits.shown(),
        "Karpenter waits until the driver has published every slice of its pool for the Node",
    );
    let head = format!("DRA driver {driver} has published no complete pool of resources for Node {} since {}", node.name(), case.since());
    let finding = match trouble {
        Some((pod, set, (container, why))) => Finding::new(
            if case.is_overdue() { Confidence::Certain } else { Confidence::Likely },
            format!("{head}: DaemonSet {set} fails there (container {container}: {why})."),
            evidence,
        )
        .blaming(Blame::object("v1", "Pod", &pod.metadata.name).namespace(pod.metadata.namespace.as_deref().unwrap_or_default())),
        None => Finding::new(Confidence::Likely, format!("{head}."), evidence).blaming(Blame::object("v1", "Node", node.name())),
    };
    finding
        .fix("Get the driver's kubelet plugin Ready on the Node: it must tolerate the Node's taints, and the image must have the device's driver.")
        .step(Risk::Inspect, "See what is published", Some(format!("kubectl get resourceslices -o wide | grep {}", node.name())))
        .unknown("Does the driver's kubelet plugin run there?", format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name()))
        .into()
}
