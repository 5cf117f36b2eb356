//! A Ready Node that has been short of disk, memory or process ids for long.

mod evicted;
mod over_reserved;
mod unused_volume;

use crate::case::stage::PRESSURES;
use crate::facts::machine_image;
use crate::objects::{Condition, Node, NodeClass, quantity};
use crate::rules::prelude::*;
use evicted::{Glutton, glutton};
use over_reserved::OverReserved;
use unused_volume::UnusedVolume;

rule! {
    cause: NodeUnderPressure,
    summary: "The Node is Ready, but has been short of disk, memory or process ids for long, so no pod is scheduled \
              there",
    stages: [Ready],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

const NEARLY_FULL: &str = "The volume for images, logs and container data is nearly full";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|n| n.is_ready())?;
    let Some(pressed) = PRESSURES.iter().find_map(|type_| node.condition(type_).filter(|c| c.is_true())) else {
        if PRESSURES.iter().all(|type_| node.condition(type_).is_some_and(Condition::is_false)) {
            return Some(Opinion::ruled_out(node, format!("Node {} reports that it has no pressure", node.name())));
        }
        return None;
    };
    let (short, fix, resource) = match pressed.type_.as_str() {
        "DiskPressure" => (
            "disk pressure",
            "Give the nodes a larger volume, or find what fills it. Only new nodes get the volume.",
            "ephemeral-storage",
        ),
        "MemoryPressure" => (
            "memory pressure",
            "Find the pods without memory limits, and reserve memory for the system (kubeReserved, systemReserved). \
             Only new nodes get the reservation.",
            "memory",
        ),
        _ => ("process id pressure", "Find the process that forks without end, and set podPidsLimit.", "pids"),
    };
    let class = case.class().filter(|_| pressed.type_ == "DiskPressure");
    let misnamed = class.and_then(NodeClass::misnamed_volume);
    let unused = class.and_then(|class| UnusedVolume::of(class, node, machine_image::of(case)));
    let size = class.and_then(|class| class.data_volume()?.ebs.as_ref()?.volume_size.as_deref());
    let volume = match (class, misnamed, size) {
        (Some(class), Some((_, volume, own)), _) => format!(
            "{} {} configures {}, but {} keeps images and pods on {own}, which has only the size that the image sets. ",
            class.kind,
            class.name(),
            volume.device_name.as_deref().unwrap_or_default(),
            class.family_name()
        ),
        (_, _, Some(size)) => format!("{NEARLY_FULL}: the node class gives it {size}. "),
        _ if pressed.type_ == "DiskPressure" => format!("{NEARLY_FULL}. "),
        _ => String::new(),
    };
    let volume = unused.as_ref().map_or(volume, UnusedVolume::said);
    let glutton = glutton(case, resource).filter(|_| misnamed.is_none() && unused.is_none());
    let whose = glutton.as_ref().map_or_else(String::new, |Glutton { workload, used, .. }| {
        format!(" Most of the evicted usage belongs to {}: {used}.", workload.shown())
    });
    let tiny = Tiny::of(node).filter(|_| pressed.type_ == "MemoryPressure");
    let reserved = tiny.as_ref().and_then(|tiny| OverReserved::of(node, &tiny.allocatable, tiny.left));
    let small = match (&reserved, &tiny) {
        (Some(reserved), _) => reserved.said(),
        (None, Some(tiny)) => tiny.said(),
        (None, None) => String::new(),
    };
    let finding = Finding::new(
        // Only a volume that the class gives to nothing is a cause; else who fills the machine stays open.
        if misnamed.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!(
            "{volume}{small}Node {} has had {short} since {}, so no pod is scheduled there and the kubelet evicts \
             pods.{whose}",
            node.name(),
            case.since()
        ),
        case.wait.evidence.clone(),
    )
    .fix(match misnamed {
        Some((_, _, own)) => {
            format!("Set deviceName: {own}, or add that volume too. Only new nodes get it.")
        }
        None => fix.to_owned(),
    })
    .inspect("See what the kubelet reports", format!("kubectl describe node {}", node.name()));
    let said = case
        .event("FreeDiskSpaceFailed")
        .or_else(|| case.event("EvictionThresholdMet"))
        .or_else(|| case.event("SystemOOM"));
    let finding = match said {
        Some(event) => finding.with(Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the kubelet's own message",
        )),
        None => finding,
    };
    if let Some(Glutton { workload, resource, evidence, .. }) = glutton {
        return finding
            .with(evidence)
            .blaming(workload.blame().field(format!("{}.containers", workload.spec())))
            .fix(format!(
                "Check how much {} uses, and give its containers a request and a limit of {resource}, which restarts \
                 its pods. The kubelet then evicts only the pod that uses too much.",
                workload.shown()
            ))
            .change("Set request and limit", workload.edit())
            .into();
    }
    if let Some(unused) = unused {
        return unused.onto(finding, node).into();
    }
    if let Some(reserved) = reserved {
        return reserved.onto(finding, case).into();
    }
    if let Some(tiny) = tiny {
        return tiny.onto(finding, case).into();
    }
    let Some(class) = class.filter(|_| misnamed.is_some() || size.is_some()) else {
        return finding.blaming(Blame::object("v1", "Node", node.name())).into();
    };
    let field = misnamed.map_or_else(
        || "spec.blockDeviceMappings".to_owned(),
        |(at, ..)| format!("spec.blockDeviceMappings.{at}.deviceName"),
    );
    finding.blaming(Blame::class(class).field(field)).into()
}

/// A node whose system leaves next to nothing for pods.
struct Tiny {
    /// The instance type, empty if nodewhy does not know it.
    type_: String,
    allocatable: String,
    /// The same in bytes.
    left: f64,
}

impl Tiny {
    /// The memory that the agents of a node use together, in bytes: less than that is no room for any pod.
    const LEAST: f64 = 400.0 * 1_048_576.0;

    fn of(node: &Node) -> Option<Self> {
        let allocatable = node.status.allocatable.get("memory")?;
        let type_ = node.metadata.label("node.kubernetes.io/instance-type").unwrap_or_default().to_owned();
        let left = quantity::parse(allocatable)?;
        (left < Self::LEAST).then(|| Self { type_, allocatable: allocatable.to_owned(), left })
    }

    fn said(&self) -> String {
        let Self { type_, allocatable, .. } = self;
        let type_ = if type_.is_empty() { "The node".to_owned() } else { format!("Instance type {type_}") };
        format!(
            "{type_} is too small: it leaves {allocatable} of memory for all pods, including the node's own agents. "
        )
    }

    fn onto(self, finding: Finding, case: &Case) -> Finding {
        let Some(pool) = case.pool() else {
            return finding
                .fix("Use a larger instance type.")
                .blaming(case.node.map(|node| Blame::object("v1", "Node", node.name())));
        };
        let name = pool.name();
        finding
            .with(Evidence::new(
                case.node.map_or_else(String::new, |node| format!("Node/{}", node.name())),
                "status.allocatable.memory",
                self.allocatable,
                "the memory that the kernel, the kubelet and its reservations leave for pods",
            ))
            .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
            .fix(format!(
                "Exclude the smallest instance types in the requirements of NodePool {name} \
                 (karpenter.k8s.aws/instance-memory Gt 2047, or instance-size NotIn nano, micro). Karpenter then \
                 replaces such nodes as drifted."
            ))
            .change("Limit the size", format!("kubectl edit nodepool {name}"))
    }
}
