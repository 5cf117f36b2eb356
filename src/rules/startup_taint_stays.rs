//! A taint that the NodePool declares as a startup taint, and that nobody removes.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::foreign::{DaemonSet, NodeClaim, Taint};
use crate::input::Input;
use crate::startup_taint;

pub static RULE: Rule = Rule {
    cause: "StartupTaintStays",
    summary: "A startup taint is still on the Node, and whoever should remove it has not",
    stages: &[Stage::Initialize],
    reads: &[Input::Nodes, Input::NodePools, Input::Pods, Input::DaemonSets],
    versions: "all",
    page: include_str!("../../docs/causes/StartupTaintStays.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(node), Some(claim)) = (case.node, case.claim) else { return Opinion::Silent };
    let staying: Vec<&Taint> = node.spec.taints.iter().filter(|t| claim.spec.startup_taints.iter().any(|s| s.matches(t))).collect();
    let Some(first) = staying.first() else {
        return Opinion::RuledOut(format!("no startup taint of NodeClaim {} is left on Node {}", claim.name(), node.name()));
    };
    // A Node that is not Ready cannot run the pod that removes the taint: the reason for NotReady comes first.
    if !node.is_ready() {
        return Opinion::Silent;
    }
    let list = staying.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let pool = claim.node_pool().unwrap_or("unknown");
    let finding = match startup_taint::owner(first) {
        None => unowned(case, claim, pool, first, &list),
        Some(owner) => owned(case, claim, first, &list, owner),
    };
    let object = format!("Node/{}", node.name());
    finding.with(saw(object, "spec.taints", list, "Karpenter never removes startup taints, it waits until somebody has")).into()
}

fn unowned(case: &Case, claim: &NodeClaim, pool: &str, taint: &Taint, list: &str) -> Finding {
    let summary = format!(
        "Startup taint {list} of NodePool {pool} is still on Node {} after {}: nothing that nodewhy knows removes it, and Karpenter waits for that without end.",
        claim.status.node_name,
        case.waited()
    );
    // Another machine of the pool got rid of it: then somebody does remove it, only not here.
    let removed_elsewhere = case
        .world
        .claims_of_pool(pool)
        .any(|c| c.name() != claim.name() && c.is_true("Initialized") && c.spec.startup_taints == claim.spec.startup_taints);
    let confidence = if removed_elsewhere { Confidence::Possible } else { Confidence::Likely };
    Finding::new(
        confidence,
        summary,
        saw(
            format!("NodePool/{pool}"),
            "spec.template.spec.startupTaints",
            list,
            "a startup taint is a promise that some controller removes it; tolerating it is not enough",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints"))
    .fix("Declare the taint under taints instead of startupTaints, or install what removes it.")
    .step(
        Risk::Mutating,
        "Move the taint from startupTaints to taints, where a toleration is all that pods need",
        Some(format!("kubectl edit nodepool {pool}")),
    )
    .step(Risk::LowRisk, "Free this Node now", Some(format!("kubectl taint node {} {}-", claim.status.node_name, taint.key)))
}

fn owned(case: &Case, claim: &NodeClaim, taint: &Taint, list: &str, owner: &startup_taint::Owner) -> Finding {
    let node = &claim.status.node_name;
    let sets: Vec<&DaemonSet> = case.world.daemon_sets().filter(|d| owner.is(&d.metadata.name)).collect();
    let pod = case.pods().find(|p| p.daemon_set().is_some_and(|d| owner.is(d)));
    let read_sets = case.world.missing(Input::DaemonSets).is_none();
    let (confidence, why, blame) = match (sets.first(), pod) {
        (_, Some(pod)) if !pod.is_ready() => {
            let trouble =
                pod.trouble().map_or_else(|| pod.status.phase.clone(), |(container, why)| format!("container {container}: {why}"));
            let blame = Blame::object("v1", "Pod", &pod.metadata.name).namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
            (Confidence::Certain, format!("its pod {} on the Node is not Ready ({trouble})", pod.metadata.name), blame)
        }
        (_, Some(pod)) => {
            let blame = Blame::object("v1", "Node", node).field("spec.taints");
            (
                Confidence::Likely,
                format!("its pod {} is Ready and has done its part, so the taint was put back after it was removed", pod.metadata.name),
                blame,
            )
        }
        (Some(set), None) if node_taints_refuse(case, set).is_some() => {
            let refused = node_taints_refuse(case, set).map(ToString::to_string).unwrap_or_default();
            let blame = Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
                .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
                .field("spec.template.spec.tolerations");
            (
                Confidence::Certain,
                format!("DaemonSet {} does not tolerate {refused}, so its pod never starts there", set.metadata.name),
                blame,
            )
        }
        (Some(set), None) => {
            let blame =
                Blame::object("apps/v1", "DaemonSet", &set.metadata.name).namespace(set.metadata.namespace.as_deref().unwrap_or_default());
            (Confidence::Likely, format!("DaemonSet {} has no pod on the Node", set.metadata.name), blame)
        }
        (None, None) if read_sets => {
            let pool = claim.node_pool().unwrap_or("unknown");
            let blame = Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints");
            (Confidence::Likely, format!("{} is not installed", owner.name), blame)
        }
        (None, None) => {
            let blame = Blame::object("v1", "Node", node).field("spec.taints");
            (Confidence::Possible, "whether it runs on the Node could not be read".to_owned(), blame)
        }
    };
    let summary = format!("Startup taint {list} is still on Node {node} after {}: {} removes it, and {why}.", case.waited(), owner.name);
    let evidence = saw(
        format!("Node/{node}"),
        "spec.taints",
        taint.to_string(),
        format!("{} removes this taint once it is ready on the Node", owner.name),
    );
    let finding = Finding::new(confidence, summary, evidence).blaming(blame).fix(owner.fix).step(
        Risk::Inspect,
        format!("See what {} does on the Node", owner.name),
        Some(format!("kubectl get pods -A -o wide --field-selector spec.nodeName={node}")),
    );
    if case.world.missing(Input::Pods).is_some() {
        finding.unknown(
            format!("Does the pod of {} run on {node}?", owner.name),
            format!("kubectl get pods -A -o wide --field-selector spec.nodeName={node}"),
        )
    } else {
        finding
    }
}

/// The first taint of the Node that the DaemonSet does not tolerate.
fn node_taints_refuse<'c>(case: &'c Case, set: &DaemonSet) -> Option<&'c Taint> {
    case.node?.spec.taints.iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t))
}
