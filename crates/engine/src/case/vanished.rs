//! Instances that are gone within minutes of their launch, one after the other, as Karpenter's log alone tells: where
//! it has no interruption queue, nobody tells the cluster.

use super::judging::Judging;
use super::stage::Wait;

use crate::api::{Evidence, Stage};
use crate::case::pool_wait::STILL_ASKED_FOR;
use crate::cluster_state::ClusterState;
use crate::objects::NodePool;
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::{LogLine, Phase};
use logs::pool_of_claim;

/// A NodeClaim that was launched, and deleted before it could join.
#[derive(Debug, Clone, Copy)]
pub struct Vanished<'w> {
    pub claim: &'w str,
    pub at: DateTime<Utc>,
    /// The line that tells of its end.
    pub line: &'w LogLine,
}

/// Somebody may have deleted two by hand.
const IN_A_ROW: usize = 3;

/// Karpenter looks every two minutes for NodeClaims whose instance EC2 has terminated. It deletes a NodeClaim that does
/// not register after 15 minutes. No other part of Karpenter deletes a NodeClaim between launch and registration.
/// Sources: core v0.36.0, v1.0.5 pkg/controllers/nodeclaim/garbagecollection/controller.go (since v1.1 it looks for
/// registered ones only), pkg/controllers/nodeclaim/lifecycle/liveness.go.
const SOON: TimeDelta = TimeDelta::minutes(5);

/// In the order of their end, those since a machine of the NodePool last joined, where the newest is new.
pub fn vanished<'w>(cluster: &'w ClusterState, pool: &NodePool, now: DateTime<Utc>) -> Vec<Vanished<'w>> {
    let logs = cluster.logs_of_gone_claims(pool.name());
    let of_claims = logs.into_iter().filter_map(|of_claim| {
        let journey = &of_claim.log.journey;
        let (began, ended) = (journey.milestones.get(&Phase::Booted)?, journey.milestones.get(&Phase::Gone)?);
        let joined = [Phase::Registered, Phase::Ready].iter().any(|phase| journey.milestones.contains_key(phase));
        let claim = journey.identity.claims.iter().find(|claim| pool_of_claim(claim) == Some(pool.name()))?;
        let (launched, at) = (began.first.time?, ended.last.time?);
        (!joined && at >= launched && at - launched <= SOON).then_some(Vanished { claim, at, line: &ended.last })
    });
    let joined = cluster.claims_of_pool(pool.name()).filter_map(|claim| claim.true_since("Registered")).max();
    let mut vanished: Vec<Vanished> = of_claims.filter(|gone| joined.is_none_or(|joined| gone.at > joined)).collect();
    vanished.sort_by_key(|gone| (gone.at, gone.claim));
    let is_new = vanished.last().is_some_and(|newest| now - newest.at <= STILL_ASKED_FOR);
    if is_new && vanished.len() >= IN_A_ROW { vanished } else { Vec::new() }
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let vanished = vanished(cluster, pool, now);
    let (first, newest) = vanished.first().zip(vanished.last())?;
    let because = "launched minutes before, and gone before it could join";
    let evidence = Evidence::new(
        newest.line.file.clone(),
        format!("line {}", newest.line.line),
        newest.line.text.clone(),
        because,
    );
    Some(Wait::new(Stage::Launch, first.at, t.launch, t, evidence))
}
