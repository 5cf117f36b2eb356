//! The machine was deleted, and something holds it for longer than its owner allowed.

mod budgets;
mod dead_kubelet;
mod drained_agents;
mod finalizers;
mod last_step;
mod volumes;

use crate::api::Stage;
use crate::case::finding::Opinion;
use crate::case::{Case, timestamp};
use crate::objects::input::Input;
use crate::objects::{Condition, Event, Node, NodeClaim, Taint};
use crate::rules::Rule;
use crate::rules::shared::volume_attachments;
use crate::upstream::karpenter::DISRUPTED_TAINTS;
use budgets::{disruption_budget, shut_budget, two_budgets};
use chrono::TimeDelta;
use dead_kubelet::dead_kubelet;
use drained_agents::{agent_gone, never_unmounted};
use finalizers::{foreign_finalizer, has_no_group, refused_as_it_is};
use last_step::{instance, nothing_to_drain};
use volumes::volumes;

pub static RULE: Rule = Rule {
    cause: "TerminationStuck",
    summary: "The NodeClaim was deleted, and a step of its deletion has hung for longer than its owner allowed",
    stages: &[Stage::Terminate],
    reads: &[
        Input::Nodes,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::Deployments,
        Input::DaemonSets,
        Input::DisruptionBudgets,
        Input::VolumeAttachments,
    ],
    lint: false,
    versions: "all; Karpenter 1.6 and later say Drained and VolumesDetached",
    page: include_str!("../../../pages/TerminationStuck.md"),
    check,
};

/// Far longer than any grace period that pods commonly have.
const PODS_GO_WITHIN: TimeDelta = TimeDelta::minutes(30);

/// Karpenter tells of one thing that holds a drain every two minutes, this or another.
const STILL_REFUSED: TimeDelta = TimeDelta::minutes(30);

fn check(case: &Case) -> Opinion {
    let Some(claim) = case.claim else { return Opinion::Silent };
    let condition = |type_: &str| claim.condition(type_);
    let endless = |node| {
        never_unmounted(case, claim, node)
            .or_else(|| agent_gone(case, claim, node))
            .or_else(|| two_budgets(case, claim, node))
    };
    if let Some(found) = case.node.filter(|_| !claim.is_true("InstanceTerminating")).and_then(endless) {
        return found.into();
    }
    let whole = case.wait.since.checked_add_signed(case.wait.proven * 2);
    if let Some(whole) = whole.filter(|at| *at > case.now) {
        return Opinion::LookAgain(whole);
    }
    let found = match case.node {
        _ if has_no_group(claim) => Some(refused_as_it_is(case, claim)),
        // Source: core pkg/controllers/node/termination/controller.go `reconcile`, nodeclaim/lifecycle/controller.go
        // `finalize` (v1.14.3).
        _ if claim.is_true("InstanceTerminating") => {
            Some(instance(case, claim, "Karpenter has asked EC2 to terminate it, and EC2 still shows it"))
        }
        Some(node) => foreign_finalizer(claim, node)
            .or_else(|| volumes(case, claim, node))
            .or_else(|| dead_kubelet(case, claim, node))
            .or_else(|| {
                let past = condition("VolumesDetached").is_some_and(|c| c.is_true() || c.is_false());
                (claim.is_true("Drained") && past).then(|| {
                    instance(case, claim, "the Node is drained, and Karpenter has not got the instance terminated")
                })
            })
            .or_else(|| shut_budget(case, claim, node))
            .or_else(|| disruption_budget(case, claim, node))
            .or_else(|| nothing_to_drain(case, claim, node)),
        // A claim that still says "Draining" has a Node that was not given.
        None if case.cluster.missing(Input::Nodes).is_none() && condition("Drained").is_none_or(Condition::is_true) => {
            Some(instance(case, claim, "its Node is gone, and Karpenter has not got the instance terminated"))
        }
        None => None,
    };
    let going = || volume_attachments::goes_until(case, volume_attachments::of(case, case.node?, None)?);
    match found {
        Some(found) => found.into(),
        None => going().map_or(Opinion::Silent, Opinion::LookAgain),
    }
}

fn drain_taint(node: &Node) -> Option<&Taint> {
    DISRUPTED_TAINTS.iter().find_map(|key| node.taint(key))
}

fn head(claim: &NodeClaim) -> String {
    let deleted = claim.metadata.deletion_timestamp.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    format!("NodeClaim {} was deleted{deleted} and does not go", claim.name())
}

/// Whether an event has been repeated for as long as `wait`, and still is.
fn lasts(case: &Case, event: &Event, wait: TimeDelta) -> bool {
    let still = event.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    still && event.first_timestamp.is_some_and(|first| case.now - first >= wait)
}

/// Whoever may write events chose their text, and it ends up in a command.
fn is_name(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}
