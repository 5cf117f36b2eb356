//! A Ready Node that has been short of disk, memory or process ids for long.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::PRESSURES;
use crate::objects::Condition;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NodeUnderPressure",
    summary: "The Node is Ready, but has been short of disk, memory or process ids for long, so nothing is scheduled there",
    stages: &[Stage::Ready],
    reads: &[Input::NodeClasses, Input::Events],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodeUnderPressure.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|n| n.is_ready()) else { return Opinion::Silent };
    let Some(pressed) = PRESSURES.iter().find_map(|type_| node.condition(type_).filter(|c| c.is_true())) else {
        if PRESSURES.iter().all(|type_| node.condition(type_).is_some_and(Condition::is_false)) {
            return Opinion::ruled_out(node, format!("Node {} reports that it has no pressure", node.name()));
        }
        return Opinion::Silent;
    };
    let volume = case.class().and_then(|c| {
        let size = c.spec.block_device_mappings.iter().find_map(|m| m.ebs.as_ref()?.volume_size.as_deref())?;
        Some((c, size))
    });
    let (short, fix) = match pressed.type_.as_str() {
        "DiskPressure" => (
            "disk pressure: its volume is nearly full of images, logs and container data",
            "Give the machines a larger volume, or find what fills it.",
        ),
        "MemoryPressure" => (
            "memory pressure",
            "Find the pods without memory limits, and reserve memory for the system (kubeReserved, systemReserved).",
        ),
        _ => ("process id pressure", "Find what forks without end; set podPidsLimit."),
    };
    let sized = volume.filter(|_| pressed.type_ == "DiskPressure");
    let size = sized.map_or_else(String::new, |(_, size)| format!(" (the node class gives it {size})"));
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {} has had {short}{size} since {}, so nothing is scheduled there and pods are evicted.",
            node.name(),
            case.since()
        ),
        case.wait.evidence.clone(),
    )
    .fix(fix)
    .step(Risk::Inspect, "See what the kubelet says", Some(format!("kubectl describe node {}", node.name())));
    let said = case
        .event("FreeDiskSpaceFailed")
        .or_else(|| case.event("EvictionThresholdMet"))
        .or_else(|| case.event("SystemOOM"));
    let finding = match said {
        Some(event) => finding.with(Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the kubelet's own words",
        )),
        None => finding,
    };
    match sized {
        Some((class, _)) => finding
            .blaming(Blame::object(&class.api_version, &class.kind, class.name()).field("spec.blockDeviceMappings"))
            .into(),
        None => finding.blaming(Blame::object("v1", "Node", node.name())).into(),
    }
}
