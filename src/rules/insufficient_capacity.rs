//! EC2 has no capacity for what the NodePool asks, or a quota or a full subnet says no: Karpenter deletes the claim at once.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::foreign::{Event, NodeClaim, NodePool};
use crate::input::Input;
use std::collections::BTreeSet;
use std::fmt::Write;

pub static RULE: Rule = Rule {
    cause: "InsufficientCapacity",
    summary: "EC2 has no capacity for the instance types and zones that the NodePool allows",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodePools, Input::Events],
    versions: "all",
    page: include_str!("../../docs/causes/InsufficientCapacity.md"),
    check,
};

/// What the fleet errors in the event say. All of them end as InsufficientCapacityError.
/// Source: karpenter-provider-aws v1.14.1 pkg/errors/errors.go `unfulfillableCapacityErrorCodes`.
const REFUSALS: &[(&[&str], &str)] = &[
    (&["VcpuLimitExceeded", "MaxFleetCountExceeded"], "the account's vCPU quota is used up"),
    (&["MaxSpotInstanceCountExceeded"], "the account's spot quota is used up"),
    (&["InsufficientFreeAddressesInSubnet"], "the subnets have no free IP addresses"),
    (
        &["spot-service-linked-role", "AuthFailure.ServiceLinkedRoleCreationNotPermitted"],
        "the spot service-linked role does not exist and may not be created",
    ),
    (&["ReservationCapacityExceeded"], "the capacity reservation is used up"),
    (&["Unsupported"], "the instance type is not offered in the zone"),
];

fn check(case: &Case) -> Opinion {
    let Some(pool) = case.pool.map(NodePool::name).or_else(|| case.claim.and_then(NodeClaim::node_pool)) else { return Opinion::Silent };
    let refused = |e: &&Event| e.reason == "InsufficientCapacityError";
    let own = match case.claim {
        Some(claim) => case.world.events("NodeClaim", claim.name()).filter(refused).max_by_key(|e| e.last_seen()),
        None => case.world.claim_events_of_pool(pool).filter(refused).max_by_key(|e| e.last_seen()),
    };
    let Some(event) = own else {
        return Opinion::RuledOut("no InsufficientCapacityError event".to_owned());
    };
    let message = &event.message;
    // An empty class reference also ends here; the node class rules speak of it.
    if message.contains("Failed resolving NodeClass") {
        return Opinion::Silent;
    }
    let earlier: BTreeSet<&str> = case
        .world
        .claim_events_of_pool(pool)
        .filter(refused)
        .map(|e| e.involved_object.name.as_str())
        .filter(|name| *name != event.involved_object.name)
        .collect();
    let wanted = wanted(case);
    let refusal =
        REFUSALS.iter().find(|(codes, _)| codes.iter().any(|c| message.contains(c)) && !message.contains("InsufficientInstanceCapacity"));
    let zones = zones(message);
    let place = if zones.is_empty() { String::new() } else { format!(" in {}", zones.join(", ")) };
    let mut summary = match refusal {
        Some((_, why)) => format!("NodePool {pool} cannot launch {wanted}: {why}."),
        None => format!("EC2 has no {wanted} capacity{place} for NodePool {pool}."),
    };
    if !earlier.is_empty() {
        let _ = write!(summary, " {} earlier NodeClaims were refused the same way.", earlier.len());
    }
    let mut finding = Finding::new(
        Confidence::Certain,
        summary,
        saw(
            format!("Event/{}", event.metadata.name),
            "message",
            message.clone(),
            "Karpenter deletes such a NodeClaim at once; this event is what remains of it",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"))
    .fix(match refusal {
        Some(([first, ..], _)) if first.contains("Limit") || first.contains("Max") => "Raise the quota, or lower the demand.",
        Some(_) => "Mend what EC2 names in the event.",
        None => "Allow more instance types, zones or capacity types in the NodePool, or add a fallback NodePool of lower weight.",
    })
    .step(
        Risk::Inspect,
        "See what the NodePool allows",
        Some(format!("kubectl get nodepool {pool} -o jsonpath='{{.spec.template.spec.requirements}}'")),
    )
    .step(Risk::Mutating, "Allow more", Some(format!("kubectl edit nodepool {pool}")));
    finding.recurrences = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
    finding.into()
}

/// The instance types asked for, in words.
fn wanted(case: &Case) -> String {
    const KEY: &str = "node.kubernetes.io/instance-type";
    let requirements = case.claim.map(|c| &c.spec.requirements).or_else(|| case.pool.map(|p| &p.spec.template.spec.requirements));
    let types =
        requirements.into_iter().flatten().find(|r| r.key == KEY && r.operator == "In").map(|r| r.values.as_slice()).unwrap_or_default();
    match types {
        [] => "instance".to_owned(),
        [one] => one.clone(),
        [one, two] => format!("{one} or {two}"),
        [one, rest @ ..] => format!("{one} (or {} more types)", rest.len()),
    }
}

/// The zones that the refusals name: `… in the Availability Zone you requested (eu-west-3b)`.
fn zones(message: &str) -> Vec<&str> {
    let named = message.split("Availability Zone you requested (").skip(1).filter_map(|rest| rest.split(')').next());
    named.collect::<BTreeSet<_>>().into_iter().collect()
}
