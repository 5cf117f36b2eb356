//! A NodePool of reserved capacity whose drifted nodes hold the reservation that their replacements need.
//!
//! Karpenter creates the replacement first. If the reservation has no free place and the NodePool allows nothing else,
//! Karpenter finds no offering for the pods of the drifted node and skips the node, in each round again.
//! Source: core pkg/controllers/disruption/drift.go `ComputeCommands` (v1.14.1). Later versions delete first if the
//! feature gate TerminateFirstDrift is on (v1.15.0).

use crate::case::judging::Judging;
use crate::case::stage::Wait;
use crate::cluster_state::ClusterState;
use crate::objects::{CapacityReservation, Event, NodeClaim, NodeClass, NodePool};
use crate::upstream::unplaced::{finds_no_offering_for_replacement, is_repeated};
use chrono::{DateTime, Utc};

/// Drifted nodes that hold a reservation.
pub(crate) struct HeldReservation<'w> {
    /// The one that has waited for longest.
    pub drifted: &'w NodeClaim,
    pub since: DateTime<Utc>,
    pub count: usize,
    /// Karpenter's reason why it does not replace that node.
    pub event: &'w Event,
    pub reservation: &'w CapacityReservation,
}

pub(crate) fn held_reservation<'w>(
    cluster: &'w ClusterState,
    pool: &'w NodePool,
    class: &'w NodeClass,
    now: DateTime<Utc>,
) -> Option<HeldReservation<'w>> {
    let gate = cluster.karpenter().and_then(|karpenter| karpenter.gate("TerminateFirstDrift"));
    if pool.spec.replicas.is_some() || !pool.is_reserved_only() || gate == Some(true) {
        return None;
    }
    let is_only_one = !cluster.pools().any(|other| other.name() != pool.name() && may_use_reservations(cluster, other));
    let mut all = Vec::new();
    for claim in cluster.claims_of_pool(pool.name()).filter(|claim| claim.metadata.deletion_timestamp.is_none()) {
        let Some(since) = claim.true_since("Drifted") else { continue };
        // Its pods run in this reservation now, so nothing but a free place is missing.
        let id = claim.metadata.label("karpenter.k8s.aws/capacity-reservation-id");
        let mut usable = pool.reservations(class);
        let Some(reservation) = usable.find(|r| Some(r.id.as_str()) == id) else { continue };
        let told = cluster.events("NodeClaim", claim.name()).filter(|event| is_repeated(event, now));
        let told = told.filter(|event| finds_no_offering_for_replacement(event, pool.name(), is_only_one));
        let Some(event) = told.max_by_key(|event| event.last_seen()) else { continue };
        all.push(HeldReservation { drifted: claim, since, count: 0, event, reservation });
    }
    let count = all.len();
    let first = all.into_iter().min_by_key(|held| (held.since, held.drifted.metadata.name.clone()))?;
    Some(HeldReservation { count, ..first })
}

/// Whether a reservation of its class may hold machines of the NodePool.
fn may_use_reservations(cluster: &ClusterState, pool: &NodePool) -> bool {
    let reference = &pool.spec.template.spec.node_class_ref;
    let mut types = pool.spec.template.spec.requirements.iter().filter(|r| r.key == "karpenter.sh/capacity-type");
    types.all(|r| r.admits("reserved"))
        && cluster
            .class(&reference.kind, &reference.name)
            .is_some_and(|facts| pool.reservations(&facts.class).next().is_some())
}

pub(super) fn wait(judging: Judging, pool: &NodePool, class: Option<&NodeClass>) -> Option<Wait> {
    let held = held_reservation(judging.cluster, pool, class?, judging.now)?;
    Some(Wait::of_held_drift(held.drifted, held.since, judging.thresholds))
}
