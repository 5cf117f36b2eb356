//! A NodePool whose nodes Karpenter consolidates minutes after their launch, one after the other, so that a pod starts
//! over on each.

use crate::api::{Evidence, Stage};
use crate::case::judging::Judging;
use crate::case::pool_wait::STILL_ASKED_FOR;
use crate::case::stage::{Symptom, Wait};
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, NodeClaim, NodePool, Pod};
use crate::upstream::unplaced::nominated;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;

/// Nodes that were consolidated in a row, and a pod that has not started on their successor.
#[derive(Debug)]
pub struct ConsolidatedEarly<'w> {
    pub pod: &'w Pod,
    pub node: &'w Node,
    /// How many of the consolidated nodes were launched for pods of the same owner.
    pub removed: usize,
    /// The longest time from launch to consolidation.
    pub within: TimeDelta,
    /// When the first of them was consolidated.
    pub since: DateTime<Utc>,
    /// The Event of the last one.
    pub last: &'w Event,
}

/// Consolidation may replace a node twice while a workload shrinks.
const IN_A_ROW: usize = 3;

/// From launch to consolidation. A node needs one or two of these minutes to become Ready.
const SOON: TimeDelta = TimeDelta::minutes(10);

/// Nodes that were launched together are not replacements of each other.
const APART: TimeDelta = TimeDelta::minutes(2);

/// Between the end of a node and the launch of the next one, whichever comes first.
const SWAPPED: TimeDelta = TimeDelta::minutes(3);

#[derive(Debug, Clone, Copy)]
struct Removed<'w> {
    claim: &'w str,
    launched: DateTime<Utc>,
    at: DateTime<Utc>,
    event: &'w Event,
}

pub fn consolidated_early<'w>(
    cluster: &'w ClusterState,
    pool: &'w NodePool,
    now: DateTime<Utc>,
) -> Option<ConsolidatedEarly<'w>> {
    let chain = chain(cluster, pool);
    let newest = chain.first().filter(|newest| chain.len() >= IN_A_ROW && now - newest.at <= STILL_ASKED_FOR)?;
    let (node, pod) = waiting(cluster, pool, newest)?;
    let owner = format!("{}-", pod.metadata.owner_references.first()?.name);
    // An owner's pods are called after it.
    let is_own = |event: &&Event| {
        event.involved_object.name.starts_with(&owner) && event.metadata.namespace == pod.metadata.namespace
    };
    // A workload that runs and shrinks by turns loses nothing.
    let started = cluster.events_of_kubelets().filter(is_own).filter(|event| event.reason == "Started");
    let started: BTreeSet<&str> = started.map(|event| event.involved_object.name.as_str()).collect();
    let own = cluster.events_of_kind("Pod").filter(is_own);
    let unstarted = own.filter(|event| !started.contains(event.involved_object.name.as_str()));
    let expected: BTreeSet<&str> = unstarted.filter_map(nominated).collect();
    let of_pod: Vec<&Removed> = chain.iter().filter(|gone| expected.contains(gone.claim)).collect();
    let first = of_pod.last().filter(|_| of_pod.len() >= IN_A_ROW)?;
    let within = of_pod.iter().map(|gone| gone.at - gone.launched).max()?;
    Some(ConsolidatedEarly { pod, node, removed: of_pod.len(), within, since: first.at, last: newest.event })
}

/// Nodes that were consolidated soon after their launch, each the replacement of the one before it, the newest first.
fn chain<'w>(cluster: &'w ClusterState, pool: &NodePool) -> Vec<Removed<'w>> {
    let events: Vec<&Event> = cluster.claim_events_of_pool(pool.name()).collect();
    // The events of one claim stand together: they are filed by its name.
    let of_claims = events.chunk_by(|a, b| a.involved_object.name == b.involved_object.name);
    let mut removed: Vec<Removed> = of_claims.filter_map(removed).collect();
    removed.sort_by_key(|gone| (gone.launched, gone.claim));
    let mut chain: Vec<Removed> = Vec::new();
    for gone in removed.into_iter().rev() {
        let is_replaced_by =
            |next: &Removed| next.launched - gone.launched >= APART && (next.launched - gone.at).abs() <= SWAPPED;
        if chain.last().is_none_or(is_replaced_by) {
            chain.push(gone);
        }
    }
    chain
}

/// `Disrupting NodeClaim: Underutilized`. A node without pods is Empty, and may go for a workload that has ended.
/// Source: core v1.0.5, v1.14.1 pkg/controllers/disruption/events/events.go `Terminating`.
fn removed<'w>(events: &[&'w Event]) -> Option<Removed<'w>> {
    let find = |reason: &str| events.iter().copied().find(|event| event.reason == reason);
    let event = find("DisruptionTerminating").filter(|event| event.message.contains("Underutilized"))?;
    let (launched, at) = (find("Launched")?.last_seen()?, event.last_seen()?);
    let is_soon = at >= launched && at - launched <= SOON;
    is_soon.then_some(Removed { claim: &event.involved_object.name, launched, at, event })
}

/// A pod that has not started on the node that came after the last consolidated one. Jobs end by themselves, and
/// DaemonSets follow each node.
fn waiting<'w>(cluster: &'w ClusterState, pool: &NodePool, last: &Removed) -> Option<(&'w Node, &'w Pod)> {
    let next = cluster.claims_of_pool(pool.name()).filter(|claim| is_next(claim, last));
    let nodes = next.flat_map(|claim| cluster.nodes_of(claim));
    let pods = nodes.flat_map(|node| cluster.pods_on(node.name()).map(move |pod| (node, pod)));
    let waits = |pod: &Pod| {
        let owner = pod.metadata.owner_references.first();
        pod.status.phase == "Pending"
            && pod.metadata.deletion_timestamp.is_none()
            && owner.is_some_and(|owner| !matches!(owner.kind.as_str(), "DaemonSet" | "Job"))
    };
    pods.filter(|(_, pod)| waits(pod)).min_by_key(|(_, pod)| (pod.metadata.creation_timestamp, &pod.metadata.name))
}

fn is_next(claim: &NodeClaim, last: &Removed) -> bool {
    let launched = claim.true_since("Launched").filter(|_| claim.metadata.deletion_timestamp.is_none());
    launched.is_some_and(|launched| launched > last.launched && (launched - last.at).abs() <= SWAPPED)
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let found = consolidated_early(cluster, pool, now)?;
    let evidence = Evidence::new(
        format!("Event NodeClaim/{}", found.last.involved_object.name),
        "message",
        found.last.said(),
        "Karpenter had launched it minutes before, and so it was with those before it",
    );
    let wait = Wait::new(Stage::Launch, found.since, t.launch, t, evidence);
    Some(Wait { symptom: Symptom::ConsolidatedEarly, ..wait })
}
