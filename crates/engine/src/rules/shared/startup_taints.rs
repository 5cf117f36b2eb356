//! Startup taints that are left, and why whoever removes them has not.

use crate::api::{Blame, Confidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::input::Input;
use crate::objects::{Pod, Taint};
use crate::rules::shared::commands;
use crate::rules::shared::taint_writer::naming_last_taint_writer;
use crate::upstream::startup_taint;

/// The startup taint that keeps the Node from being initialized, and all that are left.
///
/// Where several are left, an agent may only wait for another's taint to go: the first that waits for none is the one
/// to explain.
pub(crate) fn staying<'c>(case: &Case<'c>) -> Option<(&'c Taint, Vec<&'c Taint>)> {
    let (node, claim) = (case.node?, case.claim?);
    let all: Vec<&Taint> =
        node.spec.taints.iter().filter(|t| claim.spec.startup_taints.iter().any(|s| s.matches(t))).collect();
    let waits_for_another = |taint: &Taint| {
        let sets = || {
            startup_taint::owner(taint)
                .into_iter()
                .flat_map(|o| case.cluster.daemon_sets().filter(move |d| o.is(&d.metadata.name)))
        };
        all.iter().any(|other| !other.matches(taint) && sets().any(|set| !set.tolerates(other)))
    };
    let first = all.iter().find(|t| !waits_for_another(t)).or(all.first())?;
    Some((*first, all))
}

/// The pod of the taint's owner on the Node.
pub(crate) fn pod_of<'c>(case: &Case<'c>, owner: &startup_taint::TaintOwner) -> Option<&'c Pod> {
    case.pods().find(|p| p.daemon_set().is_some_and(|d| owner.is(d)))
}

/// Why the owner has not removed its taint from the Node.
pub(crate) fn explain(
    case: &Case,
    node: &str,
    pool: &str,
    owner: &startup_taint::TaintOwner,
) -> (Confidence, String, Blame) {
    let node_blame = || Blame::object("v1", "Node", node).field("spec.taints");
    if let Some(why) = owner.otherwise {
        return (Confidence::Likely, why.to_owned(), node_blame());
    }
    if let Some(pod) = pod_of(case, owner) {
        let name = &pod.metadata.name;
        let blame = Blame::object("v1", "Pod", name).namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
        let whose = owner.remover.map_or_else(|| "its".to_owned(), |_| format!("{}'s", owner.name));
        return match (pod.is_ready(), pod.trouble()) {
            (true, _) => {
                (Confidence::Likely, format!("has not, although {whose} pod {name} on the Node is Ready"), node_blame())
            }
            // A first crash may only be the start.
            (false, Some((container, why))) => (
                if case.is_overdue() { Confidence::Certain } else { Confidence::Likely },
                format!("{whose} pod {name} on the Node is not Ready (container {container}: {why})"),
                blame,
            ),
            (false, None) => (
                Confidence::Likely,
                format!("{whose} pod {name} on the Node is not Ready ({})", pod.status.phase),
                blame,
            ),
        };
    }
    let Some(set) = case.cluster.daemon_sets().find(|d| owner.is(&d.metadata.name)) else {
        if case.cluster.missing(Input::DaemonSets).is_some() {
            return (Confidence::Possible, "whether it runs on the Node could not be read".to_owned(), node_blame());
        }
        let blame = Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints");
        return (Confidence::Likely, format!("{} is not installed", owner.name), blame);
    };
    let name = &set.metadata.name;
    let blame =
        Blame::object("apps/v1", "DaemonSet", name).namespace(set.metadata.namespace.as_deref().unwrap_or_default());
    match case.node.and_then(|n| n.spec.taints.iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t))) {
        Some(refused) => (
            Confidence::Certain,
            format!("DaemonSet {name} does not tolerate {refused}, so its pod never starts there"),
            blame.field("spec.template.spec.tolerations"),
        ),
        None if case.cluster.missing(Input::Pods).is_some() => (
            Confidence::Possible,
            format!("whether a pod of DaemonSet {name} runs on the Node could not be read"),
            blame,
        ),
        None => (Confidence::Likely, format!("DaemonSet {name} has no pod on the Node"), blame),
    }
}

/// Where the agent is well, whoever removes its taint is the one to look at.
pub(crate) fn ask_remover(case: &Case, finding: Finding, owner: &startup_taint::TaintOwner) -> Finding {
    let well = pod_of(case, owner).is_some_and(Pod::is_ready);
    let (Some((fix, command)), Some(node), true) = (owner.ready, case.node, well) else { return finding };
    let remover = owner.remover.unwrap_or(owner.name);
    naming_last_taint_writer(finding.fix(fix), node)
        .unknown(format!("Does {remover} run, and what does it say of this Node?"), command)
}

/// The step that goes with why the owner's pod does not do its work there.
pub(crate) fn step_for(case: &Case, finding: Finding, owner: &startup_taint::TaintOwner) -> Finding {
    if let Some(pod) = pod_of(case, owner) {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
        let command = format!("kubectl describe pod -n {namespace} {}", pod.metadata.name);
        return finding.step(Risk::Inspect, "See what the pod says", Some(command));
    }
    let Some(set) = case.cluster.daemon_sets().find(|d| owner.is(&d.metadata.name)) else { return finding };
    let taints = case.node.into_iter().flat_map(|node| &node.spec.taints);
    if let Some(taint) = taints.into_iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t)) {
        return finding.step(
            Risk::Mutating,
            "Add the toleration; the DaemonSet's pods restart",
            Some(commands::tolerate(set, taint)),
        );
    }
    let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
    let command = format!("kubectl describe daemonset -n {namespace} {}", set.metadata.name);
    finding.step(Risk::Inspect, "See why the DaemonSet has no pod there", Some(command))
}
