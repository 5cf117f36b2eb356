//! Karpenter launches one node after the other for a pod, and each has less than Karpenter estimates.

use crate::case::undersized_nodes::{TooSmall, UndersizedNode};
use crate::explain::commands;
use crate::objects::{Node, quantity};
use crate::rules::prelude::*;
use crate::upstream::overhead;
use readers::source_text::{self, Span};
use readers::userdata::Family;

rule! {
    cause: MachineSmallerThanReckoned,
    summary: "New nodes are too small for the pods that they are launched for: they have less memory, storage or CPU \
              than Karpenter estimates",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeClaims, Nodes, Events, Pods, DaemonSets, Deployments],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool), Some(class)) = (case.claim, case.pool(), case.class()) else { return None };
    let overrated = case.undersized_nodes().filter_map(|found| match found.why {
        TooSmall::Overrated { reckoned, room } => Some((found, reckoned, room)),
        TooSmall::Uncounted { .. } => None,
    });
    let (found, reckoned, room) = overrated.min_by_key(|(found, ..)| found.since)?;
    let (name, node, resource) = (pool.name(), found.node.name(), found.resource);
    let namespace = found.pod.metadata.namespace.as_deref().unwrap_or("default");
    let Gap { why, blame, fix } = gap(case, &found, Blame::class(class));
    let field = format!("status.allocatable['{resource}']");
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches one node of NodePool {name} after the other for Pod {namespace}/{}, but none has room \
             for it. It estimates {} of {resource}, but Node {node} has {}, of which {} are free, and {} are \
             requested. {why}.",
            found.pod.metadata.name,
            found.amount(reckoned),
            found.amount(room),
            found.amount(found.free),
            found.amount(found.asked),
        ),
        Evidence::new(
            format!("NodeClaim/{}", found.claim.name()),
            field.clone(),
            found.claim.status.allocatable.get(resource).unwrap_or_default(),
            "Karpenter's estimate at launch: the pod would fit there",
        ),
    )
    .with(Evidence::new(
        format!("Node/{node}"),
        field,
        found.node.status.allocatable.get(resource).unwrap_or_default(),
        "what the kubelet offers to pods",
    ))
    .with(
        Evidence::new(
            format!("Pod/{}", found.pod.metadata.name),
            "events",
            "Nominated",
            "Karpenter has launched at least three nodes for it, and it still waits",
        )
        .figures(format!("{} nodes so far", found.made)),
    )
    .blaming(blame)
    .fix(fix)
    .change("Change the node class (new nodes are then correct)", commands::edit(class))
    .into()
}

/// The reason for the difference.
struct Gap {
    why: String,
    blame: Blame,
    fix: &'static str,
}

fn gap(case: &Case, found: &UndersizedNode, class: Blame) -> Gap {
    let huge = huge_pages(found.node);
    match (found.resource, left_out(case, found)) {
        ("memory", _) if huge >= found.asked - found.free => {
            let of_line = case.user_data().and_then(|(_, text)| Some((text, sets_huge_pages(text)?)));
            let (line, blame) = match of_line {
                Some((text, span)) => (
                    format!(" (userData, line {})", source_text::position(text, span.start).line),
                    class.field("spec.userData").at(text, span),
                ),
                None => (String::new(), class),
            };
            Gap {
                why: format!(
                    "{} of its memory are huge pages{line}, which Karpenter does not know about",
                    found.amount(huge)
                ),
                blame,
                fix: "Reserve no huge pages, or only on nodes of a NodePool whose pods request them. Otherwise declare \
                      the same amount of memory in spec.kubelet.systemReserved of the node class.",
            }
        }
        (_, Some(memory)) => Gap {
            why: format!(
                "Karpenter leaves the interfaces of RESERVED_ENIS out when it estimates what the kubelet reserves, and \
                 the image does not: the kubelet reserves {} more",
                found.amount(memory)
            ),
            blame: class.field("spec.kubelet"),
            fix: "Upgrade Karpenter to 1.5.2 or later, which counts as the image does. Or set the memory that the \
                  image reserves in spec.kubelet.kubeReserved of the node class, and both use that.",
        },
        ("ephemeral-storage", _) => Gap {
            why: "Karpenter counts the whole volume, but the file system takes a part of it".to_owned(),
            blame: class.field("spec.blockDeviceMappings"),
            fix: "Make the volume some GiB larger than what pods request and the kubelet reserves. Or change the pod \
                  to request less ephemeral-storage.",
        },
        _ => Gap {
            why: "The kubelet reserves more than the node class says, or the hypervisor does".to_owned(),
            blame: class.field("spec.kubelet"),
            fix: "Declare in spec.kubelet of the node class what user data or the image reserves (kubeReserved, \
                  systemReserved, evictionHard). If it is memory and neither reserves it, raise \
                  VM_MEMORY_OVERHEAD_PERCENT of Karpenter (Helm: settings.vmMemoryOverheadPercent).",
        },
    }
}

/// The memory that the kubelet reserves for pods of interfaces that Karpenter leaves out, if the pod would fit with it.
/// Sources: karpenter-provider-aws v1.5.1 pkg/providers/amifamily/resolver.go (UsesENILimitedMemoryOverhead);
/// aws/karpenter-provider-aws#8205.
fn left_out(case: &Case, found: &UndersizedNode) -> Option<f64> {
    let class = case.class()?;
    let is_of_image = matches!(class.family(), Some(Family::Al2 | Family::Al2023));
    let is_told = class.spec.kubelet.get("kubeReserved").is_some_and(|reserved| reserved.get("memory").is_some());
    if found.resource != "memory" || !is_of_image || is_told {
        return None;
    }
    let type_ = found.node.metadata.label("node.kubernetes.io/instance-type")?;
    let memory = overhead::left_out_for_interfaces(case.karpenter()?, type_)?;
    (memory >= found.asked - found.free).then_some(memory)
}

/// The memory that the kubelet subtracts for them.
/// Source: kubernetes v1.36.3 pkg/kubelet/nodestatus/setters.go `MachineInfo`.
fn huge_pages(node: &Node) -> f64 {
    let pages = node.status.allocatable.iter().filter(|(resource, _)| resource.starts_with("hugepages-"));
    pages.filter_map(|(_, amount)| quantity::parse(amount)).sum()
}

/// The line that makes the kernel reserve them: a sysctl, a file of /proc or /sys, a kernel parameter.
fn sets_huge_pages(text: &str) -> Option<Span> {
    let at = text.match_indices("hugepages").map(|(at, word)| Span::new(at, at + word.len()));
    at.into_iter().find(|span| !source_text::line_at(text, span.start).trim_start().starts_with('#'))
}
