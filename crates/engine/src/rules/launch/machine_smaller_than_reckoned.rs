//! Karpenter makes one machine after the other for a pod, and each has less than Karpenter reckons.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::outgrown::{Outgrown, TooSmall};
use crate::objects::input::Input;
use crate::objects::{Node, quantity};
use crate::rules::Rule;
use crate::rules::shared::commands;
use readers::source_text::{self, Span};

pub static RULE: Rule = Rule {
    cause: "MachineSmallerThanReckoned",
    summary: "Machines come out too small for the pods that they are made for: they have less memory, storage or CPU than Karpenter reckons",
    stages: &[Stage::Launch],
    reads: &[
        Input::NodePools,
        Input::NodeClasses,
        Input::NodeClaims,
        Input::Nodes,
        Input::Events,
        Input::Pods,
        Input::DaemonSets,
        Input::Deployments,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/MachineSmallerThanReckoned.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool), Some(class)) = (case.claim, case.pool(), case.class()) else { return Opinion::Silent };
    let overrated = case.outgrown().filter_map(|outgrown| match outgrown.why {
        TooSmall::Overrated { reckoned, room } => Some((outgrown, reckoned, room)),
        TooSmall::Uncounted { .. } => None,
    });
    let Some((found, reckoned, room)) = overrated.min_by_key(|(outgrown, ..)| outgrown.since) else {
        return Opinion::Silent;
    };
    let (name, node, resource) = (pool.name(), found.node.name(), found.resource);
    let namespace = found.pod.metadata.namespace.as_deref().unwrap_or("default");
    let Gap { why, blame, fix } = gap(case, &found, Blame::class(class));
    let field = format!("status.allocatable['{resource}']");
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter makes one machine of NodePool {name} after the other for Pod {namespace}/{}, and none has room for it: it reckons with {} of {resource}, and Node {node} has {} of which {} are free; {} are asked for. {why}.",
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
            "what Karpenter reckoned when it launched the machine: there the pod would fit",
        ),
    )
    .with(Evidence::new(
        format!("Node/{node}"),
        field,
        found.node.status.allocatable.get(resource).unwrap_or_default(),
        "what the kubelet has to give",
    ))
    .with(
        Evidence::new(
            format!("Pod/{}", found.pod.metadata.name),
            "events",
            "Nominated",
            "Karpenter has made at least three machines for it, and others since one was ready",
        )
        .figures(format!("{} machines so far", found.made)),
    )
    .blaming(blame)
    .fix(fix)
    .step(Risk::Mutating, "Change the node class; new machines are then right", Some(commands::edit(class)))
    .into()
}

/// What takes the difference.
struct Gap {
    why: String,
    blame: Blame,
    fix: &'static str,
}

fn gap(case: &Case, found: &Outgrown, class: Blame) -> Gap {
    let huge = huge_pages(found.node);
    match found.resource {
        "memory" if huge >= found.asked - found.free => {
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
                    "{} of its memory are huge pages{line}, which Karpenter does not know of",
                    found.amount(huge)
                ),
                blame,
                fix: "Reserve no huge pages, or only on machines of a NodePool whose pods ask for them; else tell Karpenter: the same amount of memory in spec.kubelet.systemReserved of the node class.",
            }
        }
        "ephemeral-storage" => Gap {
            why: "Karpenter counts the whole volume, of which the file system takes a part".to_owned(),
            blame: class.field("spec.blockDeviceMappings"),
            fix: "Make the volume larger than what pods ask for and what is kept back, by a few GiB; or have the pod ask for less ephemeral-storage.",
        },
        _ => Gap {
            why: "The kubelet keeps back more than the node class says, or the hypervisor does".to_owned(),
            blame: class.field("spec.kubelet"),
            fix: "Say in spec.kubelet of the node class what user data or the image keep back (kubeReserved, systemReserved, evictionHard); where it is memory and nothing does, raise VM_MEMORY_OVERHEAD_PERCENT of Karpenter (Helm: settings.vmMemoryOverheadPercent).",
        },
    }
}

/// What the kubelet takes off the memory for them.
/// Source: kubernetes v1.36.3 pkg/kubelet/nodestatus/setters.go `MachineInfo`.
fn huge_pages(node: &Node) -> f64 {
    let pages = node.status.allocatable.iter().filter(|(resource, _)| resource.starts_with("hugepages-"));
    pages.filter_map(|(_, amount)| quantity::parse(amount)).sum()
}

/// The line that has the kernel reserve them: a sysctl, a file of /proc or /sys, a parameter of the kernel.
fn sets_huge_pages(text: &str) -> Option<Span> {
    let at = text.match_indices("hugepages").map(|(at, word)| Span::new(at, at + word.len()));
    at.into_iter().find(|span| !source_text::line_at(text, span.start).trim_start().starts_with('#'))
}
