//! Conditions that stop all removals: a taint that came back, or too many Nodes with the taint.

use super::{Limits, PUT_BACK, REMOVING, remediated, stamp};
use crate::api::{Condition, NodeDiagnosis};
use crate::cluster_state::ClusterState;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// How long a taint that came back stops all removals.
pub const HOLD: TimeDelta = TimeDelta::hours(24);
/// A working cloud controller needs seconds. Younger Nodes rightly carry the taint, even in a large scale-up.
pub const YOUNG: TimeDelta = TimeDelta::minutes(2);

fn ended_at(diagnosis: &NodeDiagnosis) -> Option<DateTime<Utc>> {
    diagnosis.status.as_ref()?.ended_at
}

/// Whether it records a taint that came back recently enough to stop all removals.
pub(super) fn holds(said: &Condition, now: DateTime<Utc>) -> bool {
    said.reason == PUT_BACK && now - said.last_transition_time < HOLD
}

/// Counts over the whole cluster and its removals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalTally {
    pub nodes: usize,
    /// Nodes that carry the taint and are not young, stale or never initialized.
    pub tainted: usize,
    /// Nodes without the taint whose InternalIP is of that family.
    pub ipv4: usize,
    pub ipv6: usize,
    /// Removals within the window, announced and unfinished ones included.
    pub removals: usize,
    /// The message about the last taint that came back.
    pub put_back: Option<String>,
}

impl RemovalTally {
    /// Counts. `under_way` are the diagnoses with a removal that is not recorded yet.
    pub fn of<'d, 'u>(
        cluster: &ClusterState,
        diagnoses: impl Iterator<Item = &'d NodeDiagnosis>,
        under_way: impl Iterator<Item = &'u str>,
        now: DateTime<Utc>,
        limits: &Limits,
    ) -> Self {
        let mut tally = Self::default();
        // Keyed by the UID of the Node, or by the diagnosis if it has no Node. Both records of one removal count once.
        let mut removed = BTreeSet::new();
        let mut came_back = BTreeMap::new();
        for node in cluster.nodes() {
            tally.nodes += 1;
            let young = node.metadata.creation_timestamp.is_none_or(|at| now - at < YOUNG);
            let is_tainted = node.taint(UNINITIALIZED_TAINT).is_some();
            tally.tainted += usize::from(!young && is_tainted);
            match node.internal_ip().filter(|_| !is_tainted) {
                Some(IpAddr::V4(_)) => tally.ipv4 += 1,
                Some(IpAddr::V6(_)) => tally.ipv6 += 1,
                None => {}
            }
            if stamp::is_recent(node, now, limits.window()) {
                removed.insert(&*node.metadata.uid);
            }
            if let Some(taint) = stamp::came_back(node) {
                came_back.insert(&*node.metadata.uid, stamp::put_back(node, taint));
            }
        }
        let mut under_way: BTreeSet<&str> = under_way.collect();
        let mut put_back = None;
        for diagnosis in diagnoses {
            let name = diagnosis.metadata.name.as_deref().unwrap_or_default();
            let key = diagnosis.spec.node.as_ref().map_or(name, |node| &node.uid);
            if under_way.remove(name) {
                removed.insert(key);
            }
            let Some(done) = remediated(diagnosis) else { continue };
            let age = now - done.last_transition_time;
            // An unanswered or announced removal may have happened.
            let announced =
                || done.reason == REMOVING && ended_at(diagnosis).is_none_or(|at| now - at < limits.window());
            if (done.status != "False" && age < limits.window()) || announced() {
                removed.insert(key);
            }
            if done.reason == PUT_BACK {
                // From here on its time counts: others write the list too.
                came_back.remove(key);
            }
            if holds(done, now) {
                put_back = put_back.max(Some((done.last_transition_time, done.message.clone())));
            }
        }
        for (message, at) in came_back.into_values() {
            let at = at.unwrap_or(now);
            put_back = put_back.max(Some((at, message.into())).filter(|_| now - at < HOLD));
        }
        removed.extend(under_way);
        tally.removals = removed.len();
        tally.put_back = put_back.map(|(_, message)| message.to_string());
        tally
    }
}
