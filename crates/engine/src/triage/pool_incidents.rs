//! The diagnosis of a NodePool with stuck machines: one object to look at instead of three hundred.
//!
//! It begins with the second machine, because the diagnosis of a single machine says everything. It continues between
//! machines that are launched one after the other. It ends when one has joined, or when none was stuck for [`QUIET`].
//! nodewhy writes the counts at once if they have doubled or the cause has changed, and otherwise once per [`PACE`]. A
//! thousand machines that appear one by one cause few writes. Without news there is no write.

use super::history::History;
use super::outbox::Write;
use super::pool_verdict::{InVain, PoolCount, PoolFacts, ended_at, last_joined};
use super::record::{self, Update};
use crate::api::pool_machines::MachinesOfCause;
use crate::api::{NodeDiagnosis, Outcome, Stage, Text};
use crate::case::duration;
use crate::cluster_state::{ClusterState, Subject, diagnosis_name};
use crate::diagnose;
use crate::objects::NodeClaim;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// Karpenter deletes machines that have not registered after 15 minutes. Their replacements count as stuck after 10
/// minutes at the latest. So an ongoing incident never has a longer pause without stuck machines.
const QUIET: TimeDelta = TimeDelta::minutes(30);
/// Minimum time between two writes of changed counts.
const PACE: TimeDelta = TimeDelta::seconds(30);

#[derive(Debug, Default)]
pub(super) struct PoolIncidents {
    /// NodePools with a machine whose diagnosis changed since the last look.
    touched: BTreeSet<String>,
    /// When to look again.
    due: BTreeMap<String, DateTime<Utc>>,
    /// The time of the last write, by NodePool.
    written: BTreeMap<String, DateTime<Utc>>,
    /// Failed launches since the last write, by NodePool.
    in_vain: BTreeMap<String, InVain>,
    /// NodePools with an ongoing incident although no machine is stuck. The next machine that joins ends it.
    lingering: BTreeSet<String>,
    /// NodePools that lost their own verdict.
    released: BTreeSet<String>,
}

impl PoolIncidents {
    /// A diagnosis of a machine or of the NodePool changed.
    pub(super) fn touch(&mut self, diagnosis: &NodeDiagnosis) {
        let Some(pool) = &diagnosis.spec.node_pool else { return };
        self.touched.insert(pool.name.clone());
        // The write of another replica contains its counts.
        if diagnosis.spec.subject.kind == "NodePool" {
            self.in_vain.remove(&pool.name);
        }
    }

    /// Like [`Self::touch`], for a diagnosis that this replica writes.
    pub(super) fn note(&mut self, write: &Write) {
        let spec = &write.diagnosis.spec;
        let Some(pool) = spec.node_pool.as_ref().filter(|_| spec.subject.kind != "NodePool") else { return };
        self.touched.insert(pool.name.clone());
        if let Some(ran) = write.in_vain {
            self.in_vain.entry(pool.name.clone()).or_default().add(ran);
        }
    }

    pub(super) fn touch_lingering(&mut self, claim: &NodeClaim) {
        let of = claim.node_pool().filter(|pool| claim.is_true("Registered") && self.lingering.contains(*pool));
        self.touched.extend(of.map(str::to_owned));
    }

    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        self.due.values().min().copied()
    }

    /// The NodePool has no verdict of its own now. Returns whether its machines still give it one.
    pub(super) fn speaks_on(&mut self, open: &NodeDiagnosis, history: &History) -> bool {
        let Some(Subject::Pool(pool)) = Subject::of(&open.spec.subject) else { return false };
        let is_own = !open.speaks_for_machines();
        if is_own && history.of_pool(&pool).all(|(_, stuck, _)| stuck == 0) {
            return false;
        }
        if is_own {
            self.released.insert(pool.clone());
        }
        self.touched.insert(pool);
        true
    }

    /// New diagnoses of NodePools with changes, and of those that are due.
    pub(super) fn look(&mut self, history: &History, cluster: &ClusterState, now: DateTime<Utc>) -> Vec<Update> {
        let due = self.due.iter().filter(|(_, at)| **at <= now).map(|(pool, _)| pool.clone());
        let pools: BTreeSet<String> = due.chain(std::mem::take(&mut self.touched)).collect();
        pools.into_iter().map(|pool| self.look_at(&pool, history, cluster, now)).collect()
    }

    fn look_at(&mut self, pool: &str, history: &History, cluster: &ClusterState, now: DateTime<Utc>) -> Update {
        self.due.remove(pool);
        self.lingering.remove(pool);
        let here = cluster.pool(pool).map(|p| p.metadata.uid.to_string());
        let known = history.get(&diagnosis_name("NodePool", pool));
        let standing = known.filter(|known| {
            let is_this = here.as_ref().is_none_or(|uid| known.spec.subject.stands_for(uid));
            known.is_open() && known.status.is_some() && is_this
        });
        let counted = PoolCount::of(history, pool);
        let before = standing.and_then(|known| known.status.as_ref()?.machines.as_deref());
        let is_released = self.released.remove(pool);
        let Some(before) = before else {
            let failed = failed_lately(history, cluster, pool, now);
            let machines = counted.stuck + failed.len();
            if here.is_none() || counted.stuck == 0 || machines < 2 {
                self.in_vain.remove(pool);
                return Update::Nothing;
            }
            // Machines that failed just before belong to the incident too.
            let mut in_vain = InVain::default();
            failed.iter().filter_map(|d| d.ran_in_vain()).for_each(|ran| in_vain.add(ran));
            self.in_vain.insert(pool.to_owned(), in_vain);
            let own = standing.filter(|_| !is_released);
            return self.say(
                pool,
                &PoolFacts { known, standing: own, counted: &counted, failed: &failed },
                history,
                cluster,
                now,
            );
        };
        if counted.stuck == 0 {
            match over(history, cluster, pool, now) {
                Over::At(outcome, at) => return ended(standing, outcome, at),
                Over::NotBefore(at) => {
                    self.lingering.insert(pool.to_owned());
                    self.due.insert(pool.to_owned(), at);
                }
            }
        }
        let news = counted.causes != before.causes || self.in_vain.contains_key(pool);
        if !news && !is_released {
            return Update::Nothing;
        }
        let total = |causes: &[MachinesOfCause]| {
            let add = |(stuck, so_far): (u32, u32), of: &MachinesOfCause| {
                (stuck.saturating_add(of.stuck), so_far.saturating_add(of.so_far))
            };
            causes.iter().fold((0, 0), add)
        };
        let ((stuck, so_far), (stuck_before, so_far_before)) = (total(&counted.causes), total(&before.causes));
        let is_urgent = is_released
            || (stuck == 0) != (stuck_before == 0)
            || stuck >= stuck_before.saturating_mul(2).max(1)
            || so_far >= so_far_before.saturating_mul(2)
            || standing.is_some_and(|d| d.speaks_for_machines() && counted.leading(standing) != d.cause());
        let next = self.written.entry(pool.to_owned()).or_insert(now).checked_add_signed(PACE);
        if let Some(next) = next.filter(|next| *next > now && !is_urgent) {
            let due = self.due.entry(pool.to_owned()).or_insert(next);
            *due = next.min(*due);
            return Update::Nothing;
        }
        let own = standing.filter(|_| !is_released);
        self.say(pool, &PoolFacts { known, standing: own, counted: &counted, failed: &[] }, history, cluster, now)
    }

    fn say(
        &mut self,
        pool: &str,
        told: &PoolFacts,
        history: &History,
        cluster: &ClusterState,
        now: DateTime<Utc>,
    ) -> Update {
        let in_vain = self.in_vain.remove(pool).unwrap_or_default();
        self.written.insert(pool.to_owned(), now);
        let goes_on = told.known.filter(|known| known.is_open());
        let before = goes_on.and_then(|d| d.status.as_ref()?.machines.as_deref());
        let in_vain = InVain {
            machines: before.map_or(0, |b| b.failed_launches).saturating_add(in_vain.machines),
            seconds: before.map_or(0, |b| b.failed_launch_seconds).saturating_add(in_vain.seconds),
        };
        let Some(mut new) = told.diagnosis(pool, in_vain, history, cluster, now) else { return Update::Nothing };
        let replaced = told.known.filter(|known| told.standing.is_none() && !known.is_open());
        if let Some(replaced) = replaced {
            record::note_earlier(history, &mut new, replaced, now);
        }
        let replaces = told.known.is_some_and(|known| !known.spec.subject.stands_for(&new.spec.subject.uid));
        record::unannounced(new, replaces)
    }
}

/// Machines of the NodePool that failed recently without joining, after the last join and the last incident.
fn failed_lately<'h>(
    history: &'h History,
    cluster: &ClusterState,
    pool: &str,
    now: DateTime<Utc>,
) -> Vec<&'h NodeDiagnosis> {
    let joined = last_joined(cluster, pool).map(|joined| joined.at);
    let after = history.get(&diagnosis_name("NodePool", pool)).and_then(ended_at).max(joined);
    let of_pool = history.of_pool(pool).flat_map(|(incident, ..)| history.of(incident));
    let is_recent = |at: DateTime<Utc>| now - at < QUIET && Some(at) > after;
    of_pool.filter(|d| d.ran_in_vain().is_some() && ended_at(d).is_some_and(is_recent)).collect()
}

/// Whether an incident without stuck machines is over.
enum Over {
    At(Outcome, DateTime<Utc>),
    NotBefore(DateTime<Utc>),
}

fn over(history: &History, cluster: &ClusterState, pool: &str, now: DateTime<Utc>) -> Over {
    let ended = history.of_pool(pool).flat_map(|(incident, ..)| history.of(incident));
    let Some((last, end)) = ended.filter_map(|d| Some((d, ended_at(d)?))).max_by_key(|(_, at)| *at) else {
        return Over::At(Outcome::Deleted, now);
    };
    if last.outcome() == Some(Outcome::Recovered) {
        return Over::At(Outcome::Recovered, end);
    }
    let never_joined = last.status.as_ref().is_some_and(|s| s.stage <= Stage::Register);
    match last_joined(cluster, pool) {
        Some(joined) if joined.at > end => Over::At(Outcome::Recovered, joined.at),
        _ if !never_joined || cluster.pool(pool).is_none() => Over::At(Outcome::Deleted, end),
        _ => match end.checked_add_signed(QUIET).filter(|quiet| *quiet > now) {
            Some(quiet) => Over::NotBefore(quiet),
            None => Over::At(Outcome::Deleted, end),
        },
    }
}

fn ended(standing: Option<&NodeDiagnosis>, outcome: Outcome, at: DateTime<Utc>) -> Update {
    let Some(mut diagnosis) = standing.cloned() else { return Update::Nothing };
    // A verdict of its own stays open, without counts.
    if !diagnosis.speaks_for_machines() {
        if let Some(status) = &mut diagnosis.status {
            status.machines = None;
        }
        return record::unannounced(diagnosis, false);
    }
    diagnose::close(&mut diagnosis, outcome, at, None);
    if let Some(status) = &mut diagnosis.status {
        let lasted = duration(at - status.first_observed_at);
        let how = match outcome {
            Outcome::Recovered => format!("a machine of the NodePool became usable, after {lasted}"),
            _ => format!("the last machine that was stuck is gone, after {lasted}, and none came after it"),
        };
        let how = Text::from(how);
        if let Some(machines) = &mut status.machines {
            machines.stuck = 0;
            machines.causes.iter_mut().for_each(|of| of.stuck = 0);
        }
        status.conditions.iter_mut().filter(|c| c.type_ == "Ended").for_each(|c| c.message.clone_from(&how));
    }
    record::unannounced(diagnosis, false)
}
