//! What else a stuck node holds up: it takes a place in the disruption budget of its NodePool.
//!
//! Karpenter subtracts the nodes that are not Ready, and those that it is already removing, from what a budget allows.
//! One dead node can so keep all others of its NodePool from being replaced.
//! Source: core pkg/controllers/disruption/helpers.go `BuildDisruptionBudgetMapping` (v1.0.5, v1.14.1, v1.15.0).

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Condition, NodeClaim, NodePool};
use chrono::{DateTime, Utc};

/// A budget that is used up while a drifted node waits for its replacement.
struct Spent {
    /// What the budget says: `10%`.
    nodes: String,
    allowed: usize,
    counted: usize,
    taken: usize,
    /// When Karpenter began to remove those of them that are Ready.
    drains: Vec<DateTime<Utc>>,
    /// The NodeClaim that has waited for longest, and its condition.
    drifted: (String, String),
}

/// Adds that the node uses up the budget, if others wait for that reason.
pub(crate) fn told(case: &Case, finding: Finding) -> Finding {
    static SPENT: Memo<Option<Spent>> = Memo::new("disruption budgets that are used up");
    let Some(claim) = case.claim.filter(|_| matches!(case.stage(), Stage::Ready | Stage::Terminate)) else {
        return finding;
    };
    if !is_counted(case.cluster, claim) || !takes_a_place(case.cluster, claim) {
        return finding;
    }
    let Some(pool) = claim.node_pool().and_then(|name| case.cluster.pool(name)) else { return finding };
    let spent = case.cluster.once(&SPENT, pool.name(), || spent(case.cluster, pool));
    let Some(Spent { nodes, allowed, counted, taken, drains, drifted: (drifted, condition) }) = &*spent else {
        return finding;
    };
    // A drain that began after this node fell silent had a place in the budget all the same.
    let going_on = drains.iter().filter(|began| **began > case.wait.since).count();
    if taken.saturating_sub(going_on) < *allowed {
        return finding;
    }
    let name = pool.name();
    finding
        .adding(&format!(
            "It also counts against the disruption budget of NodePool {name} ({nodes}), which is used up: Karpenter \
             replaces no drifted node of it."
        ))
        .with(
            Evidence::new(
                format!("NodePool/{name}"),
                "spec.disruption.budgets",
                format!("nodes: {nodes}"),
                "Karpenter subtracts nodes that are not Ready or are being removed from what the budget allows",
            )
            .figures(format!("allows {allowed} of {counted} nodes; {taken} are not Ready or are being removed")),
        )
        .with(Evidence::new(
            format!("NodeClaim/{drifted}"),
            r#"status.conditions[?(@.type=="Drifted")]"#,
            condition.clone(),
            "it waits for its replacement",
        ))
}

/// Karpenter counts no NodeClaim without a Node, none that is not initialized yet, and none whose instance is
/// terminating: its drain is over.
fn is_counted(cluster: &ClusterState, claim: &NodeClaim) -> bool {
    let has_node = !cluster.nodes_of(claim).is_empty();
    has_node && claim.is_true("Initialized") && !claim.is_true("InstanceTerminating")
}

/// A drain counts from the deletion of the NodeClaim on. A cordon or a taint alone does not count.
/// Source: core pkg/controllers/state/statenode.go `MarkedForDeletion`, `Deleted` (v1.14.1).
fn drained_since(claim: &NodeClaim) -> Option<DateTime<Utc>> {
    claim.metadata.deletion_timestamp
}

fn takes_a_place(cluster: &ClusterState, claim: &NodeClaim) -> bool {
    drained_since(claim).is_some() || !is_ready(cluster, claim)
}

fn is_ready(cluster: &ClusterState, claim: &NodeClaim) -> bool {
    cluster.nodes_of(claim).first().is_some_and(|node| node.condition("Ready").is_some_and(Condition::is_true))
}

fn spent(cluster: &ClusterState, pool: &NodePool) -> Option<Spent> {
    let counted: Vec<&NodeClaim> =
        cluster.claims_of_pool(pool.name()).filter(|claim| is_counted(cluster, claim)).collect();
    let taken = counted.iter().filter(|claim| takes_a_place(cluster, claim)).count();
    let drains =
        counted.iter().filter(|claim| is_ready(cluster, claim)).filter_map(|claim| drained_since(claim)).collect();
    let (allowed, nodes) = pool.allowed_drift(counted.len())?;
    // Who writes 0 wants no disruption.
    if allowed == 0 || taken < allowed {
        return None;
    }
    let waiting = cluster.claims_of_pool(pool.name()).filter(|claim| drained_since(claim).is_none());
    let drifted = waiting.filter_map(|claim| Some((claim.true_since("Drifted")?, claim)));
    let (_, first) = drifted.min_by_key(|(since, claim)| (*since, claim.name()))?;
    let condition = first.condition("Drifted").map(Condition::shown).unwrap_or_default();
    let drifted = (first.name().to_owned(), condition);
    Some(Spent { nodes: nodes.to_owned(), allowed, counted: counted.len(), taken, drains, drifted })
}
