//! A NodePool whose new machines are drifted as soon as they run: what Karpenter compares with is changed by somebody
//! else, so that each replacement is replaced.

use crate::case::judging::Judging;
use crate::case::stage::Wait;
use crate::cluster_state::ClusterState;
use crate::objects::{Condition, Event, NodeClaim, NodePool};
use crate::upstream::text_hash::TextHash;
use chrono::{DateTime, TimeDelta, Utc};

pub(crate) struct DriftAtOnce<'w> {
    /// Why the newest of them is drifted, as Karpenter says.
    pub drifted: &'w Condition,
    pub newest: &'w NodeClaim,
    /// From its launch until it was drifted.
    pub after: TimeDelta,
    /// How many there are now.
    pub count: usize,
    /// How many were replaced for drift before, as far as Events tell.
    pub replaced: usize,
    /// When the first of those was.
    pub since: DateTime<Utc>,
}

/// Karpenter looks every five minutes, and as soon as a machine is initialized.
/// Source: core v1.14.1 pkg/controllers/nodeclaim/disruption/controller.go `Reconcile`.
const AT_ONCE: TimeDelta = TimeDelta::minutes(15);

/// Somebody who changes a node class in the middle of a rollout makes all drift at one time, each at another age.
const ALIKE: TimeDelta = TimeDelta::minutes(2);

pub(crate) fn drift_at_once<'w>(cluster: &'w ClusterState, pool: &NodePool) -> Option<DriftAtOnce<'w>> {
    // One that is being replaced is there for a while yet.
    let mut young: Vec<(DateTime<Utc>, TimeDelta, &NodeClaim)> =
        cluster.claims_of_pool(pool.name()).filter_map(at_once).collect();
    young.retain(|(.., claim)| claim.metadata.deletion_timestamp.is_none() || is_of_itself(claim));
    young.sort_by_key(|(launched, _, claim)| (*launched, claim.name()));
    let ((first, ..), (launched, after, newest)) = (young.first()?, young.last()?);
    let lags = || young.iter().map(|(_, after, _)| *after);
    let is_in_step = *launched - *first >= ALIKE && lags().max()? - lags().min()? < ALIKE;
    // Its text did not change since: then it is its node class or NodePool that is not what it was.
    let class = &newest.spec.node_class_ref;
    let class = cluster.class(&class.kind, &class.name).map(|facts| &facts.class.metadata);
    let own = TextHash::of_class(&newest.metadata);
    let is_same_text = class.is_none_or(|class| own.is_none() || TextHash::of_class(class) == own);
    let mut replaced: Vec<&Event> = cluster.claim_events_of_pool(pool.name()).filter(|e| is_replaced(e)).collect();
    replaced.retain(|event| event.last_seen() < Some(*launched));
    replaced.sort_by_key(|event| (&event.involved_object.name, event.last_seen()));
    replaced.dedup_by_key(|event| &event.involved_object.name);
    let since = replaced.iter().filter_map(|event| event.last_seen()).min()?;
    let drifted = newest.condition("Drifted")?;
    // Nobody writes what these reasons are about: one that was replaced is enough.
    let enough = if is_of_itself(newest) { 1 } else { 2 };
    let stays = newest.metadata.deletion_timestamp.is_none();
    (is_in_step && is_same_text && stays && replaced.len() >= enough).then_some(DriftAtOnce {
        drifted,
        newest,
        after: *after,
        count: young.len(),
        replaced: replaced.len(),
        since,
    })
}

/// Whether Karpenter finds it by asking AWS, whatever NodePool and node class say.
/// Source: karpenter-provider-aws v1.14.1 pkg/cloudprovider/drift.go `isNodeClassDrifted`.
fn is_of_itself(claim: &NodeClaim) -> bool {
    const OF_AWS: [&str; 3] = ["CapacityReservationDrift", "SecurityGroupDrift", "SubnetDrift"];
    claim.condition("Drifted").is_some_and(|drifted| OF_AWS.contains(&&*drifted.reason))
}

fn at_once(claim: &NodeClaim) -> Option<(DateTime<Utc>, TimeDelta, &NodeClaim)> {
    let (launched, drifted) = (claim.true_since("Launched")?, claim.true_since("Drifted")?);
    let after = drifted.signed_duration_since(launched);
    (after <= AT_ONCE).then_some((launched, after, claim))
}

/// `Disrupting NodeClaim: Drifted/Replace`
/// Source: core v1.0.5 pkg/controllers/disruption/events/events.go `Terminating`, types.go `Command.String`.
fn is_replaced(event: &Event) -> bool {
    event.reason == "DisruptionTerminating" && event.message.contains("Drifted")
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let found = drift_at_once(judging.cluster, pool)?;
    Some(Wait::of_drift_at_once(found.newest, found.since, judging.thresholds))
}
