//! A static NodePool whose limit leaves no room for the replacement of a machine that has drifted.
//!
//! Karpenter makes the replacement first, and reserves a node for it under limits.nodes; where none is to be had it
//! passes over the NodePool, in each round again.
//! Source: core v1.8.0 pkg/controllers/disruption/staticdrift.go `ComputeCommands`. Later versions delete first where
//! the feature gate TerminateFirstDrift is on.

use crate::case::judging::Judging;
use crate::case::stage::Wait;
use crate::cluster_state::ClusterState;
use crate::objects::{Node, NodeClaim, NodePool};
use crate::upstream::karpenter::DO_NOT_DISRUPT;
use chrono::{DateTime, Utc};

pub(crate) struct NoRoom<'w> {
    pub limit: i64,
    pub replicas: i64,
    /// The one that has waited for longest.
    pub drifted: &'w NodeClaim,
    pub since: DateTime<Utc>,
    pub count: usize,
}

pub(crate) fn no_room<'w>(cluster: &'w ClusterState, pool: &NodePool) -> Option<NoRoom<'w>> {
    let replicas = pool.spec.replicas.filter(|replicas| *replicas > 0)?;
    let limit: i64 = pool.spec.limits.get("nodes")?.parse().ok()?;
    let gate = |name: &str| cluster.karpenter().and_then(|karpenter| karpenter.gate(name));
    if limit <= 0 || gate("StaticCapacity") == Some(false) || gate("TerminateFirstDrift") == Some(true) {
        return None;
    }
    // Somebody who lets nothing be disrupted means it.
    if pool.spec.disruption.budgets.iter().any(|budget| matches!(budget.nodes.trim_end_matches('%'), "0")) {
        return None;
    }
    let claims = || cluster.claims_of_pool(pool.name()).filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let running = i64::try_from(claims().count()).ok()?;
    // Machines that are still to come, or too many, are another matter.
    if running != replicas || running < limit {
        return None;
    }
    let is_kept = |node: &Node| node.metadata.annotation(DO_NOT_DISRUPT) == Some("true");
    let may_go = |claim: &NodeClaim| {
        claim.metadata.annotation(DO_NOT_DISRUPT) != Some("true")
            && !cluster.nodes_of(claim).into_iter().any(is_kept)
            && claim.is_true("Initialized")
    };
    let drifted = claims().filter(|claim| may_go(claim));
    let drifted: Vec<_> = drifted.filter_map(|claim| Some((claim.true_since("Drifted")?, claim))).collect();
    let (since, first) = drifted.iter().min_by_key(|(since, claim)| (*since, claim.name()))?;
    Some(NoRoom { limit, replicas, drifted: first, since: *since, count: drifted.len() })
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let found = no_room(cluster, pool)?;
    // A replacement under way, and pods that may not be evicted for a while, hold a drift up as well.
    let is_late = now.signed_duration_since(found.since) >= t.terminate;
    is_late.then(|| Wait::of_held_drift(found.drifted, found.since, t).only_with_proof())
}
