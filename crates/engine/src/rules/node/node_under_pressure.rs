//! A Ready Node that has been short of disk, memory or process ids for long.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::PRESSURES;
use crate::objects::input::Input;
use crate::objects::{Condition, NodeClass};
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
    let class = case.class().filter(|_| pressed.type_ == "DiskPressure");
    let misnamed = class.and_then(NodeClass::misnamed_volume);
    let size = class.and_then(|class| class.data_volume()?.ebs.as_ref()?.volume_size.as_deref());
    let volume = match (class, misnamed, size) {
        (Some(class), Some((_, volume, own)), _) => format!(
            " (the node class describes {}, but on {} images and pods live on {own}, which keeps the image's size)",
            volume.device_name.as_deref().unwrap_or_default(),
            class.family_name()
        ),
        (_, _, Some(size)) => format!(" (the node class gives it {size})"),
        _ => String::new(),
    };
    let finding = Finding::new(
        // Only a volume that the class gives to nothing is a cause; else who fills the machine stays open.
        if misnamed.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!(
            "Node {} has had {short}{volume} since {}, so nothing is scheduled there and pods are evicted.",
            node.name(),
            case.since()
        ),
        case.wait.evidence.clone(),
    )
    .fix(match misnamed {
        Some((_, _, own)) => {
            format!("Write deviceName: {own}, or describe that volume as well: only new machines get it.")
        }
        None => fix.to_owned(),
    })
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
    let Some(class) = class.filter(|_| misnamed.is_some() || size.is_some()) else {
        return finding.blaming(Blame::object("v1", "Node", node.name())).into();
    };
    let field = misnamed.map_or_else(
        || "spec.blockDeviceMappings".to_owned(),
        |(at, ..)| format!("spec.blockDeviceMappings.{at}.deviceName"),
    );
    finding.blaming(Blame::class(class).field(field)).into()
}
