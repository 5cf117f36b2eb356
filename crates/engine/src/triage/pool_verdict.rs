//! The verdict of a NodePool for its machines: that of one machine, and how many are stuck.

use super::advice;
use super::history::{History, Incident};
use super::incidents::machines_of;
use crate::api::pool_machines::{LastJoined, MachinesOfCause, PoolMachines};
use crate::api::schema_limits::{CAUSES, STEPS};
use crate::api::{Evidence, Named, NodeDiagnosis, NodeDiagnosisSpec, ObjectRef};
use crate::cluster_state::{ClusterState, diagnosis_name};
use crate::diagnose::disruption;
use crate::facts::recent_edits;
use crate::objects::NodeClaim;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

/// Machines that were launched and never joined.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InVain {
    pub(super) machines: u32,
    pub(super) seconds: u64,
}

impl InVain {
    pub(super) fn add(&mut self, ran: TimeDelta) {
        self.machines = self.machines.saturating_add(1);
        self.seconds = self.seconds.saturating_add(ran.num_seconds().try_into().unwrap_or_default());
    }
}

/// The machines of a NodePool.
pub(super) struct PoolCount<'h> {
    pub(super) stuck: usize,
    /// The most frequent cause first.
    pub(super) causes: Vec<MachinesOfCause>,
    incidents: Vec<&'h Incident>,
}

impl<'h> PoolCount<'h> {
    pub(super) fn of(history: &'h History, pool: &str) -> Self {
        let mut by_cause: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        let mut incidents = Vec::new();
        let mut all = 0;
        for (incident, stuck, so_far) in history.of_pool(pool) {
            let of_cause = by_cause.entry(&incident.cause).or_default();
            of_cause.0 = of_cause.0.saturating_add(u32::try_from(stuck).unwrap_or(u32::MAX));
            of_cause.1 = of_cause.1.saturating_add(so_far);
            all += stuck;
            incidents.push(incident);
        }
        let mut causes: Vec<_> = by_cause
            .into_iter()
            .map(|(cause, (stuck, so_far))| MachinesOfCause { cause: cause.to_owned().into(), stuck, so_far })
            .collect();
        causes.sort_by_key(|of| (std::cmp::Reverse((of.stuck, of.so_far)), of.cause.clone()));
        causes.truncate(CAUSES);
        Self { stuck: all, causes, incidents }
    }

    /// The cause of the verdict: that of most machines. A shown cause stays until another has twice as many machines.
    pub(super) fn leading(&self, standing: Option<&'h NodeDiagnosis>) -> Option<&str> {
        let most = self.causes.first()?;
        let stands = standing.filter(|d| d.speaks_for_machines()).and_then(NodeDiagnosis::cause);
        let stuck = |cause: &str| self.causes.iter().find(|of| of.cause == cause).map_or(0, |of| of.stuck);
        match stands {
            // Between two launches no machine is stuck.
            Some(cause) if most.stuck == 0 || (stuck(cause) > 0 && most.stuck < 2 * stuck(cause)) => Some(cause),
            _ => Some(&most.cause),
        }
    }
}

/// Facts about a NodePool and its machines.
pub(super) struct PoolFacts<'h> {
    pub(super) known: Option<&'h NodeDiagnosis>,
    /// The open diagnosis.
    pub(super) standing: Option<&'h NodeDiagnosis>,
    pub(super) counted: &'h PoolCount<'h>,
    /// Machines that failed just before it begins.
    pub(super) failed: &'h [&'h NodeDiagnosis],
}

impl PoolFacts<'_> {
    pub(super) fn diagnosis(
        &self,
        pool: &str,
        in_vain: InVain,
        history: &History,
        cluster: &ClusterState,
        now: DateTime<Utc>,
    ) -> Option<NodeDiagnosis> {
        let before = self.standing.and_then(|d| d.status.as_ref()?.machines.as_deref());
        let mut machines = PoolMachines {
            stuck: u32::try_from(self.counted.stuck).unwrap_or(u32::MAX),
            example: None,
            causes: self.counted.causes.clone(),
            failed_launches: in_vain.machines,
            failed_launch_seconds: in_vain.seconds,
            last_joined: last_joined(cluster, pool).max(before.and_then(|b| b.last_joined.clone())),
        };
        // The NodePool's own verdict is more specific than that of any machine.
        if let Some(own) = self.standing.filter(|standing| !standing.speaks_for_machines()) {
            let mut own = own.clone();
            own.status.as_mut()?.machines = Some(Box::new(machines));
            return Some(own);
        }
        let cause = self.counted.leading(self.standing)?;
        let Some(example) = self.example(cause, before, history) else {
            // All diagnoses of its machines were deleted.
            let mut same = self.standing?.clone();
            let status = same.status.as_mut()?;
            machines.example = status.machines.as_ref().and_then(|m| m.example.clone());
            status.machines = Some(Box::new(machines));
            return Some(same);
        };
        let mut status = example.status.clone()?;
        let name = &example.spec.subject.name;
        let head = machines_of(pool, self.counted.stuck);
        let of_cause = self.counted.causes.iter().find(|of| of.cause == cause);
        status.summary = match (self.counted.stuck, of_cause.map_or(0, |of| of.stuck)) {
            (0, _) => {
                format!("No machine of NodePool {pool} is stuck just now; the last one was {name}: {}", status.summary)
            }
            (all, of_cause) if u32::try_from(all) == Ok(of_cause) => format!("{head}: {}", status.summary),
            (_, of_cause) => format!("{head}, {of_cause} of them as {name}: {}", status.summary),
        }
        .into();
        machines.example = Some(name.clone());
        let open = history.open_of_pool(pool).filter_map(|d| d.status.as_ref());
        let failed = self.failed.iter().filter_map(|d| d.status.as_ref());
        let standing = self.standing.and_then(|d| d.status.as_ref());
        status.first_observed_at =
            open.chain(failed).chain(standing).map(|s| s.first_observed_at).min().unwrap_or(status.first_observed_at);
        // Whoever had joined may be gone, and with it what tells that this was changed before.
        let of_object = |e: &Evidence| (e.object.clone(), e.because.clone());
        let told: Vec<_> = status.evidence.iter().map(of_object).collect();
        let changes = standing.into_iter().flat_map(|s| &s.evidence).filter(|e| e.because == recent_edits::BECAUSE);
        status.evidence.extend(changes.filter(|e| !told.contains(&of_object(e))).cloned());
        let recommended = standing.and_then(|s| s.fix.as_ref()).map_or(&[][..], |fix| &fix.steps);
        let advice = advice::steps(cluster, pool, &machines, status.first_observed_at, recommended);
        if let Some(fix) = status.fix.as_mut().filter(|_| !advice.is_empty()) {
            fix.steps.truncate(STEPS.saturating_sub(advice.len()));
            fix.steps.extend(advice);
            fix.disruption = disruption::of_fix(&fix.summary, &fix.steps, status.blame.as_deref(), cluster);
        }
        status.machines = Some(Box::new(machines));
        status.earlier = standing.map(|s| s.earlier.clone()).unwrap_or_default();
        // Of the NodePool nothing has ended, and nobody deletes it.
        (status.terminates_at, status.ended_at, status.outcome, status.recurrences) = (None, None, None, 0);
        status.conditions.retain(|c| matches!(&*c.type_, "Judged" | "Diagnosed"));
        for condition in &mut status.conditions {
            let same = standing
                .and_then(|s| s.conditions.iter().find(|c| c.type_ == condition.type_ && c.status == condition.status));
            condition.last_transition_time = same.map_or(now, |c| c.last_transition_time);
        }
        let spec = spec(cluster, pool).or_else(|| self.standing.map(|d| d.spec.clone()))?;
        let mut diagnosis = NodeDiagnosis::new(&diagnosis_name("NodePool", pool), spec);
        diagnosis.status = Some(status.within_limits());
        Some(diagnosis)
    }

    /// The machine whose verdict stands for all: the same as before while it is stuck, else the one that waits longest,
    /// else the one that ended last.
    fn example<'a>(
        &self,
        cause: &str,
        before: Option<&PoolMachines>,
        history: &'a History,
    ) -> Option<&'a NodeDiagnosis> {
        let of_cause = self.counted.incidents.iter().filter(|incident| incident.cause == cause);
        let all: Vec<&NodeDiagnosis> = of_cause.flat_map(|incident| history.of(incident)).collect();
        let open = || all.iter().copied().filter(|d| d.is_open() && d.status.is_some());
        let name = before.and_then(|b| b.example.as_deref());
        let same = open().find(|d| Some(d.spec.subject.name.as_str()) == name);
        let longest = || open().min_by_key(|d| d.status.as_ref().map(|s| s.first_observed_at));
        let last = || all.iter().copied().max_by_key(|d| ended_at(d));
        same.or_else(longest).or_else(last)
    }
}

pub(super) fn ended_at(diagnosis: &NodeDiagnosis) -> Option<DateTime<Utc>> {
    diagnosis.status.as_ref().and_then(|s| s.ended_at)
}

pub(super) fn last_joined(cluster: &ClusterState, pool: &str) -> Option<LastJoined> {
    let joined =
        |claim: &NodeClaim| Some(LastJoined { at: claim.true_since("Registered")?, name: claim.name().to_owned() });
    cluster.claims_of_pool(pool).filter_map(joined).max()
}

fn spec(cluster: &ClusterState, pool: &str) -> Option<NodeDiagnosisSpec> {
    let pool = cluster.pool(pool)?;
    let class = &pool.spec.template.spec.node_class_ref.name;
    Some(NodeDiagnosisSpec {
        subject: ObjectRef {
            api_version: "karpenter.sh/v1".to_owned(),
            kind: "NodePool".to_owned(),
            name: pool.name().to_owned(),
            uid: pool.metadata.uid.to_string(),
        },
        node_claim: None,
        node: None,
        node_pool: Some(Named { name: pool.name().to_owned() }),
        node_class: (!class.is_empty()).then(|| Named { name: class.to_string() }),
    })
}
