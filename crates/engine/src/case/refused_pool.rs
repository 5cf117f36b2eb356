//! A NodePool that Karpenter, or the API server for it, refuses: before 1.0 its log alone says so.

use super::judging::Judging;
use super::stage::Wait;
use super::{unplaced, waiting_pods};
use crate::case::pool_wait;
use crate::objects::{NodeClaim, NodePool};
use logs::fact::{Fact, Trouble};

/// Whether what the NodePool is refused for, a label of its machines, still stands there: then one line is enough.
pub fn stands(pool: &NodePool, fact: &Fact) -> bool {
    let labels = &pool.spec.template.metadata.labels;
    let mut quoted = fact.last.text.split('"').skip(1).step_by(2);
    fact.trouble == Trouble::NodePoolRefused && quoted.any(|key| labels.iter().any(|(label, _)| *label == *key))
}

/// A NodePool that a pod could have a machine of, did Karpenter's log not say that it is refused.
pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    const REFUSED: [Trouble; 2] = [Trouble::NodePoolRefused, Trouble::NodeClaimRefused];
    let Judging { cluster, now, thresholds: t } = judging;
    let logs = cluster.logs_of_pool(pool.name());
    let open = logs.iter().flat_map(|of_pool| of_pool.log.journey.open());
    let told = open.filter(|fact| REFUSED.contains(&fact.trouble) && (fact.lasts() || stands(pool, fact)));
    let (first, last) = told.filter_map(|fact| fact.first.time.zip(fact.last.time)).max_by_key(|(_, last)| *last)?;
    // Karpenter tries again for as long as a pod waits: after a silence it was corrected, or the log is an old one.
    let is_old = now.signed_duration_since(last) > pool_wait::STILL_ASKED_FOR;
    let later = |claim: &NodeClaim| claim.metadata.creation_timestamp.is_some_and(|made| made > last);
    if is_old || cluster.claims_of_pool(pool.name()).any(later) {
        return None;
    }
    let waiting = waiting_pods(cluster).filter(|pod| unplaced::admits(pool, pod));
    pool_wait::refused_pool_wait(waiting.min_by_key(|pod| pod.metadata.creation_timestamp)?, first, t)
}
