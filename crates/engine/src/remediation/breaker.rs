//! What stops every removal at once: a taint that came back, and many Nodes that carry it.

use super::{Limits, PUT_BACK, REMOVING, remediated};
use crate::api::{Condition, NodeDiagnosis};
use crate::cluster_state::ClusterState;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// How long a taint that came back stops everything.
pub(super) const HOLD: TimeDelta = TimeDelta::hours(24);
/// A working cloud controller needs seconds. Younger Nodes carry the taint by right, however many a scale-up brings.
const YOUNG: TimeDelta = TimeDelta::minutes(2);

fn ended_at(diagnosis: &NodeDiagnosis) -> Option<DateTime<Utc>> {
    diagnosis.status.as_ref()?.ended_at
}

/// Whether it says that a taint came back, and stops everything for it.
pub(super) fn holds(said: &Condition, now: DateTime<Utc>) -> bool {
    said.reason == PUT_BACK && now - said.last_transition_time < HOLD
}

/// The cluster as a whole, and what was done in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovalTally {
    pub nodes: usize,
    /// Nodes that carry the taint and are not young, stale or never initialized.
    pub tainted: usize,
    /// Nodes without the taint whose InternalIP is of that family.
    pub ipv4: usize,
    pub ipv6: usize,
    /// Removals within the window, those announced and those under way included.
    pub removals: usize,
    /// What is said of the last taint that came back.
    pub put_back: Option<String>,
}

impl RemovalTally {
    /// Counts. `under_way` are the diagnoses whose removal is not written down yet.
    pub fn of<'d, 'u>(
        cluster: &ClusterState,
        diagnoses: impl Iterator<Item = &'d NodeDiagnosis>,
        under_way: impl Iterator<Item = &'u str>,
        now: DateTime<Utc>,
        limits: &Limits,
    ) -> Self {
        let mut tally = Self::default();
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
        }
        let mut removed: BTreeSet<String> = under_way.map(str::to_owned).collect();
        let mut put_back = None;
        for diagnosis in diagnoses {
            let Some(done) = remediated(diagnosis) else { continue };
            let age = now - done.last_transition_time;
            // What nobody answered, and what was announced, may have been done.
            let announced =
                || done.reason == REMOVING && ended_at(diagnosis).is_none_or(|at| now - at < limits.window());
            if (done.status != "False" && age < limits.window()) || announced() {
                removed.extend(diagnosis.metadata.name.clone());
            }
            if holds(done, now) {
                put_back = put_back.max(Some((done.last_transition_time, &done.message)));
            }
        }
        tally.removals = removed.len();
        tally.put_back = put_back.map(|(_, message)| message.clone());
        tally
    }
}
