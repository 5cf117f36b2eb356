//! The machine or its node class was deleted, and a step of the deletion takes longer than its owner allowed.

mod budgets;
mod dead_kubelet;
mod drained_agents;
mod finalizers;
mod instance_gone;
mod last_step;
mod node_class;
mod refused;
mod undisturbed;
mod unlaunched;
mod volumes;
mod without_claim;

use crate::case::timestamp;
use crate::explain::volume_attachments;
use crate::objects::{Condition, Event, Node, NodeClaim, Taint};
use crate::rules::prelude::*;
use crate::upstream::former_words::Words;
use crate::upstream::karpenter::{DISRUPTED_TAINTS, TERMINATION_FINALIZER, TERMINATION_TIMESTAMP, Version};
use budgets::{disruption_budget, shut_budget, two_budgets};
use chrono::TimeDelta;
use dead_kubelet::dead_kubelet;
use drained_agents::{agent_gone, never_unmounted};
use finalizers::{claim_held_by_other, has_no_group, node_held_by_other, refused_as_it_is};
use instance_gone::instance_gone;
use last_step::{instance, nothing_to_drain};
use refused::refused;
use undisturbed::undisturbed;
use unlaunched::unlaunched;
use volumes::volumes;
use without_claim::{is_drained_without_claim, without_claim};

rule! {
    cause: TerminationStuck,
    summary: "A NodeClaim, Node or node class was deleted, and a step of its deletion has hung for longer than its \
              owner allowed",
    stages: [Terminate],
    reads: [
        Nodes, NodeClaims, NodePools, NodeClasses, Events, Pods, Deployments, DaemonSets, DisruptionBudgets,
        VolumeAttachments, Logs,
    ],
    versions: "all; Karpenter 1.6 and later report Drained and VolumesDetached",
}

/// Far longer than any usual grace period of pods.
const PODS_GO_WITHIN: TimeDelta = TimeDelta::minutes(30);

/// Karpenter reports one obstacle of a drain every two minutes, this or another.
const STILL_REFUSED: TimeDelta = TimeDelta::minutes(30);

fn check(case: &Case) -> Option<Opinion> {
    match case.class() {
        Some(class) if case.claim.is_none() && case.node.is_none() => node_class::held(case, class),
        _ => machine(case),
    }
}

fn machine(case: &Case) -> Option<Opinion> {
    if let Some(found) = case.node.and_then(|node| endless(case, node)) {
        return found.into();
    }
    if let Some(found) = case.claim.and_then(|claim| unlaunched(case, claim)) {
        return found.into();
    }
    if let Some(found) = refused(case) {
        return found.into();
    }
    let whole = case.wait.since.checked_add_signed(case.wait.proven * 2);
    if let Some(whole) = whole.filter(|at| *at > case.now) {
        return Some(Opinion::LookAgain(whole));
    }
    let found = match (case.claim, case.node) {
        (Some(claim), node) => of_claim(case, claim, node),
        (None, Some(node)) => without_claim(case, node),
        (None, None) => None,
    };
    let going = || volume_attachments::goes_until(case, volume_attachments::of(case, case.node?, None)?);
    match found {
        Some(found) => found.into(),
        None => going().map(Opinion::LookAgain),
    }
}

/// For an obstacle that no time ends, half of it is enough.
fn endless(case: &Case, node: &Node) -> Option<Finding> {
    let drains = match case.claim {
        Some(claim) => !claim.is_true("InstanceTerminating"),
        // Before machines were objects of their own, it drained a Node whatever its kubelet said.
        None => is_drained_without_claim(case, node) || case.cluster.is_before_machines(),
    };
    if !drains {
        return None;
    }
    instance_gone(case, node)
        .or_else(|| never_unmounted(case, node))
        .or_else(|| agent_gone(case, node))
        .or_else(|| two_budgets(case, node))
        .or_else(|| undisturbed(case, node))
        .or_else(|| dead_kubelet(case, node))
}

fn of_claim(case: &Case, claim: &NodeClaim, node: Option<&Node>) -> Option<Finding> {
    let condition = |type_: &str| claim.condition(type_);
    match node {
        _ if has_no_group(claim) => Some(refused_as_it_is(case, claim)),
        // Source: core pkg/controllers/node/termination/controller.go `reconcile`, nodeclaim/lifecycle/controller.go
        // `finalize` (v1.14.3).
        _ if claim.is_true("InstanceTerminating") => {
            Some(instance(case, claim, "Karpenter has asked EC2 to terminate it, but EC2 still shows it"))
        }
        Some(node) => node_held_by_other(case, node)
            .or_else(|| volumes(case, node))
            .or_else(|| {
                let past = condition("VolumesDetached").is_some_and(|c| c.is_true() || c.is_false());
                (claim.is_true("Drained") && past).then(|| {
                    instance(case, claim, "the Node is drained, but Karpenter has not got the instance terminated")
                })
            })
            .or_else(|| shut_budget(case, node))
            .or_else(|| disruption_budget(case, node))
            .or_else(|| nothing_to_drain(case, claim, node)),
        // A claim that still says "Draining" has a Node that was not given.
        None if case.cluster.missing(Input::Nodes).is_none() && condition("Drained").is_none_or(Condition::is_true) => {
            Some(claim_held_by_other(case, claim).unwrap_or_else(|| {
                instance(case, claim, "its Node is gone, but Karpenter has not got the instance terminated")
            }))
        }
        None => None,
    }
}

/// What limits a drain, as the last sentence of a fix, with the blank before it.
fn limit(case: &Case) -> &'static str {
    if can_be_limited(case) {
        " A terminationGracePeriod on the NodePool limits the wait for future nodes."
    } else {
        ""
    }
}

/// Source: core pkg/apis/v1/nodeclaim.go `TerminationGracePeriod` (v1.0.0); pkg/apis/v1beta1 (v0.37.0) has none.
fn can_be_limited(case: &Case) -> bool {
    match case.karpenter() {
        Some(karpenter) => karpenter.version >= Version(1, 0, 0),
        None => case.words() == Words::Present,
    }
}

fn drain_taint(node: &Node) -> Option<&Taint> {
    DISRUPTED_TAINTS.iter().find_map(|key| node.taint(key))
}

fn head(case: &Case) -> String {
    let claim = case.claim.map(|claim| &claim.metadata);
    let meta = claim.or_else(|| case.node.map(|node| &node.metadata)).or_else(|| case.class().map(|c| &c.metadata));
    let deleted = meta.and_then(|meta| meta.deletion_timestamp);
    let deleted = deleted.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    format!("{} was deleted{deleted} but still exists", case.subject().replacen('/', " ", 1))
}

/// Karpenter's progress, from the NodeClaim's conditions.
fn step<'c>(case: &Case<'c>, type_: &str) -> Option<&'c Condition> {
    case.claim.and_then(|claim| claim.condition(type_))
}

/// Whether the drain is over, or ends by itself: only a NodeClaim has a terminationGracePeriod, but node repair also
/// notes the end of one.
fn is_bounded(case: &Case) -> bool {
    let noted = |claim: &NodeClaim| claim.metadata.annotation(TERMINATION_TIMESTAMP).is_some();
    case.claim
        .is_some_and(|claim| claim.is_true("Drained") || claim.spec.termination_grace_period.is_some() || noted(claim))
}

/// Karpenter's own report that it still waits for pods. Otherwise it stops waiting for a pod one minute after its grace
/// period.
/// Sources: core pkg/utils/pod/scheduling.go `IsStuckTerminating` (v1.0.5, v1.14.3); karpenter#2316.
fn drains(case: &Case) -> Option<Evidence> {
    let because = "Karpenter still waits for pods of the Node";
    if let Some(drained) = step(case, "Drained").filter(|c| !c.is_true()) {
        let field = r#"status.conditions[?(@.type=="Drained")]"#;
        return Some(Evidence::new(case.subject(), field, drained.shown(), because));
    }
    // Source: github.com/aws/karpenter v0.5.6 pkg/controllers/termination/terminate.go `drain`: it waits for every pod.
    let alone = case.node.filter(|_| case.cluster.is_before_machines());
    if alone.is_some_and(|node| node.metadata.finalizers.iter().any(|own| *own == TERMINATION_FINALIZER)) {
        return Some(Evidence::new(case.subject(), "metadata.finalizers", TERMINATION_FINALIZER, because));
    }
    let still = |at: &chrono::DateTime<chrono::Utc>| case.now - *at <= STILL_REFUSED;
    let event = case.event("FailedDraining").filter(|e| e.last_seen().is_some_and(|at| still(&at)))?;
    Some(
        Evidence::new(format!("Event/{}", event.metadata.name), "message", event.said(), because)
            .figures(format!("{} times", event.times())),
    )
}

/// Whether an event has been repeated for as long as `wait`, and continues.
fn lasts(case: &Case, event: &Event, wait: TimeDelta) -> bool {
    let still = event.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    still && event.first_timestamp.is_some_and(|first| case.now - first >= wait)
}

/// Anyone who may write events chose their text, and the text becomes part of a command.
fn is_name(name: &str) -> bool {
    name.starts_with(char::is_alphanumeric) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
}
