//! Karpenter's rounds of provisioning, where each fails as a whole: its log alone says so, and of no object.

use super::judging::Judging;
use super::stage::Wait;
use super::{unplaced, waiting_pods};
use crate::case::pool_wait;
use crate::cluster_state::ClusterState;
use crate::objects::{NodePool, Pod};
use crate::upstream::unplaced::is_refusal;
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::{Fact, Phase, Trouble};

/// An error that Karpenter logs again and again instead of launching nodes.
#[derive(Debug, Clone, Copy)]
pub struct FailingRound<'w> {
    /// The newest log line.
    pub fact: &'w Fact,
    pub count: u64,
    pub first: DateTime<Utc>,
    pub last: DateTime<Utc>,
}

/// How far apart two lines of one error are at least, if they stand for the rounds between them.
const APART: TimeDelta = TimeDelta::minutes(10);

impl<'w> FailingRound<'w> {
    /// Joins facts that replace each other into one series. `None` if the series is too short to count.
    fn of(facts: &[&'w Fact]) -> Option<Self> {
        let all = || facts.iter().copied();
        let fact = all().max_by_key(|fact| fact.last.time)?;
        let first = all().filter_map(|fact| fact.first.time).min()?;
        let (count, last) = (all().map(|fact| fact.count).sum(), fact.last.time?);
        // People keep a few lines of a log: an error that says what is wrong is a series even if it was kept twice.
        let is_kept_twice = count > 1 && !fact.vague && last.signed_duration_since(first) >= APART;
        (is_kept_twice || Fact::last_together(all())).then_some(Self { fact, count, first, last })
    }

    /// How long it may say nothing and still mean it: twice as long as between two times before. It tries less and less
    /// often, and people keep one line of many.
    fn pause(&self) -> TimeDelta {
        const AT_MOST: TimeDelta = TimeDelta::hours(1);
        let pauses = i32::try_from(self.count.saturating_sub(1)).unwrap_or(i32::MAX).max(1);
        (self.last.signed_duration_since(self.first) * 2 / pauses).min(AT_MOST)
    }
}

/// The error of the last rounds up to now, for all NodePools or for this one. Launch errors of its NodeClaims that were
/// deleted without an instance count too.
///
/// `None` if a NodeClaim was created since the first error: then rounds succeed in between.
pub fn failing_round<'w>(cluster: &'w ClusterState, pool: &NodePool, now: DateTime<Utc>) -> Option<FailingRound<'w>> {
    let of_pool = cluster.logs_of_pool(pool.name()).into_iter().map(|of_pool| of_pool.log);
    let told = cluster.logs_of_components().chain(of_pool).flat_map(|log| log.journey.open());
    let rounds = told.filter(|fact| fact.trouble == Trouble::ProvisioningFails);
    let rounds = rounds.filter_map(|fact| FailingRound::of(&[fact]));
    // The end of a NodeClaim takes nothing back that was said of its launch.
    let gone = cluster.logs_of_gone_claims(pool.name());
    let gone = gone.iter().map(|of_claim| &of_claim.log.journey);
    let unlaunched = gone.filter(|journey| !journey.milestones.contains_key(&Phase::Booted));
    let refused = unlaunched.flat_map(|journey| &journey.facts).filter(|fact| match fact.trouble {
        Trouble::AwsRefuses | Trouble::RequestRefused => fact.blocks == Phase::Booted,
        trouble => trouble == Trouble::Unexplained,
    });
    let refused: Vec<&Fact> = refused.collect();
    let round = rounds.chain(FailingRound::of(&refused)).max_by_key(|round| round.last)?;
    // Karpenter tries again for as long as a pod waits: after a silence it has got over it, or the log is an old one.
    let is_old = now.signed_duration_since(round.last) > pool_wait::STILL_ASKED_FOR.max(round.pause());
    let made = || cluster.claims().any(|claim| claim.metadata.creation_timestamp >= Some(round.first));
    (!is_old && !made()).then_some(round)
}

/// A NodePool that a pod could have a machine of, while each round fails.
pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let first = failing_round(cluster, pool, now)?.first;
    let waiting = held_up(cluster, pool).filter(|pod| {
        // What it says of a pod, it says at the end of a round that came so far.
        // Source: core v1.14.1 pkg/controllers/provisioning/scheduling/scheduler.go `Results.Record`.
        cluster.events_about_pod(pod).all(|event| !is_refusal(event) || event.last_seen() < Some(first))
    });
    pool_wait::failing_round_wait(waiting.min_by_key(|pod| pod.metadata.creation_timestamp)?, first, t)
}

/// Pods that wait for a Node, and that Karpenter would make one of this NodePool for.
/// Source: core v1.14.1 pkg/utils/pod/scheduling.go `IsProvisionable`.
pub fn held_up<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> impl Iterator<Item = &'w Pod> {
    // Before 0.32 the label of a Provisioner was for pods.
    let is_for = move |pod: &&Pod| {
        pod.daemon_set().is_none() && unplaced::restricted_label(pod).is_none_or(|key| unplaced::own_label(pool, key))
    };
    waiting_pods(cluster).filter(is_for).filter(|pod| unplaced::admits(pool, pod))
}
