//! Startup taints that are left, and why whoever removes them has not.

use crate::api::{Blame, Link};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::input::Input;
use crate::objects::{Node, Pod, Taint};
use crate::rules::shared::agent_chain::{Obstacle, Proof, of_pod, refused, remover_waits, without_pod};
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

/// Why the owner has not removed its taint from the Node: a clause, and what stands behind it.
pub(crate) fn explain(
    case: &Case,
    node: &Node,
    pool: &str,
    taint: &Taint,
    owner: &startup_taint::TaintOwner,
) -> Obstacle {
    let name = node.name();
    let open = |why: &str, blame: Blame| {
        let link = Link::new(blame.object.clone(), why);
        Obstacle::new(Proof::Open, why, blame, link).fix(owner.fix)
    };
    let of_node = || Blame::object("v1", "Node", name).field("spec.taints");
    if let Some(why) = owner.otherwise {
        return open(why, of_node());
    }
    if let Some(waits) = remover_waits(case, taint, owner) {
        return waits;
    }
    let whose = owner.remover.map_or_else(|| "its".to_owned(), |_| format!("{}'s", owner.name));
    if let Some(pod) = pod_of(case, owner) {
        if pod.is_ready() {
            return open(
                &format!("has not, although {whose} pod {} on the Node is Ready", pod.metadata.name),
                of_node(),
            );
        }
        let obstacle = of_pod(case, node, pod);
        return Obstacle { why: format!("{whose} {}", obstacle.why), ..obstacle };
    }
    let installed = case.cluster.daemon_sets().find(|d| owner.is(&d.metadata.name)).map(|d| &*d.metadata.name);
    let refused_set = || owner.daemon_sets().iter().copied().find(|set| refused(case, node, set, None).is_some());
    match installed.or_else(refused_set) {
        Some(set) => without_pod(case, node, set),
        None if case.cluster.missing(Input::DaemonSets).is_some() => {
            Obstacle { proof: Proof::None, ..open("whether it runs on the Node could not be read", of_node()) }
        }
        None => {
            let blame = Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.startupTaints");
            open(&format!("{} is not installed", owner.name), blame)
        }
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
