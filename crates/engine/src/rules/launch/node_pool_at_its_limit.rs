//! A NodePool whose limits leave no room for one more machine of any type that it allows, though pods wait for it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim, NodePool, Taint};
use crate::rules::Rule;
use crate::upstream::startup_taint;
use crate::upstream::unplaced::PlacementObstacle;

pub static RULE: Rule = Rule {
    cause: "NodePoolAtItsLimit",
    summary: "The NodePool's limits leave no room for another machine, and pods wait for it",
    stages: &[Stage::Launch],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodePoolAtItsLimit.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let limits: Vec<String> = pool.spec.limits.iter().map(|(what, most)| format!("{what} {most}")).collect();
    // A limit of nothing is how a NodePool is switched off.
    let off = pool.spec.limits.iter().any(|(_, most)| most.trim_end_matches(char::is_alphabetic) == "0");
    let Some(told) = case.unplaced().find(|u| u.refusal == PlacementObstacle::Limits && !off && !limits.is_empty())
    else {
        return Opinion::Silent;
    };
    if kept_empty(case, pool) {
        return Opinion::Silent;
    }
    let (name, limits) = (pool.name(), limits.join(", "));
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: its limits ({limits}) leave no room for another machine of any type that it allows."
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.limits",
            limits.clone(),
            "a machine that would exceed any of them is not launched, however much is left",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", told.event.involved_object.name),
        "message",
        told.event.said(),
        "Karpenter has no instance type that fits into what is left",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.limits"))
    .fix("Raise the limits by at least one machine of the types that are allowed, or allow smaller ones.")
    .step(
        Risk::Inspect,
        "See what counts against the limits",
        Some(format!("kubectl get nodepool {name} -o jsonpath='{{.status.resources}}'")),
    )
    .step(Risk::Mutating, "Raise the limits", Some(format!("kubectl edit nodepool {name}")))
    .into()
}

/// Whether a machine of the NodePool takes no pods yet, for which there would be room: what keeps it empty is what they
/// wait for.
fn kept_empty(case: &Case, pool: &NodePool) -> bool {
    let is_open = |claim: &NodeClaim| {
        let of_agent = |taint: &Taint| {
            startup_taint::owner(taint).is_some() && !claim.spec.taints.iter().any(|own| own.matches(taint))
        };
        let held = |node: &&Node| node.spec.taints.iter().any(of_agent);
        !claim.is_true("Initialized") || case.cluster.nodes_of(claim).iter().any(held)
    };
    case.cluster.claims_of_pool(pool.name()).any(is_open)
}
