//! What was said: the diagnoses by name, and by what they have in common. How many of those that ended are kept, and
//! for how long.

use crate::api::NodeDiagnosis;
use crate::remediation;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How much of the past is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// A diagnosis that ended is deleted after so long.
    pub retention: TimeDelta,
    /// So many that ended are kept for each cause, NodePool and node class.
    pub history: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self { retention: TimeDelta::hours(24), history: 10 }
    }
}

/// The properties that all diagnoses of one incident share.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Incident {
    pub(super) cause: String,
    pub(super) node_pool: Option<String>,
    pub(super) node_class: Option<String>,
    /// Whether it is about machines, not about a NodePool or a node class.
    pub(super) of_machines: bool,
}

impl Incident {
    pub(super) fn of(diagnosis: &NodeDiagnosis) -> Self {
        Self {
            cause: diagnosis.cause().unwrap_or_default().to_owned(),
            node_pool: diagnosis.spec.node_pool.as_ref().map(|p| p.name.clone()),
            node_class: diagnosis.spec.node_class.as_ref().map(|c| c.name.clone()),
            of_machines: matches!(diagnosis.spec.subject.kind.as_str(), "NodeClaim" | "Node" | "Instance"),
        }
    }
}

/// The order in which machines fell ill: how many did before, then the end, then the name.
type Rank = (u32, Option<DateTime<Utc>>, String);

#[derive(Debug, Default)]
struct Members {
    open: BTreeSet<String>,
    ended: BTreeSet<Rank>,
    /// Machines so far. It is the last member's `recurrences` and one, so a restart finds it in the objects.
    machines: u32,
}

#[derive(Debug)]
pub(super) struct History {
    keep: Keep,
    /// Shared with what is still to be written: in an incident that is all of them.
    by_name: BTreeMap<String, Arc<NodeDiagnosis>>,
    incidents: BTreeMap<Incident, Members>,
    by_end: BTreeSet<(DateTime<Utc>, String)>,
    /// Incidents that may hold more than is kept.
    grown: BTreeSet<Incident>,
    /// How often something was put in or taken out.
    revision: u64,
}

impl History {
    pub(super) fn new(keep: Keep) -> Self {
        Self {
            keep,
            by_name: BTreeMap::new(),
            incidents: BTreeMap::new(),
            by_end: BTreeSet::new(),
            grown: BTreeSet::new(),
            revision: 0,
        }
    }

    /// How long what has ended is kept.
    pub(super) const fn retention(&self) -> TimeDelta {
        self.keep.retention
    }

    pub(super) fn get(&self, name: &str) -> Option<&NodeDiagnosis> {
        self.by_name.get(name).map(Arc::as_ref)
    }

    /// Differs whenever something else was said.
    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    /// Ended ones too, as they are shared.
    pub(super) fn shared(&self) -> impl Iterator<Item = &Arc<NodeDiagnosis>> {
        self.by_name.values()
    }

    /// Ended ones too.
    pub(super) fn all(&self) -> impl Iterator<Item = &NodeDiagnosis> + Clone {
        self.by_name.values().map(Arc::as_ref)
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &NodeDiagnosis> {
        self.incidents.values().flat_map(|members| &members.open).filter_map(|name| self.get(name))
    }

    /// Open diagnoses of an incident.
    pub(super) fn open_of(&self, incident: &Incident) -> usize {
        self.incidents.get(incident).map_or(0, |members| members.open.len())
    }

    /// Incidents with open diagnoses.
    pub(super) fn incidents(&self) -> impl Iterator<Item = (&Incident, usize)> {
        self.incidents.iter().map(|(incident, members)| (incident, members.open.len())).filter(|(_, open)| *open > 0)
    }

    /// Incidents of the machines of a NodePool, each with those that are stuck now and all so far.
    pub(super) fn of_pool(&self, pool: &str) -> impl Iterator<Item = (&Incident, usize, u32)> {
        let of_pool = move |incident: &Incident| incident.of_machines && incident.node_pool.as_deref() == Some(pool);
        let incidents = self.incidents.iter().filter(move |(incident, _)| of_pool(incident));
        incidents.map(|(incident, members)| (incident, members.open.len(), members.machines))
    }

    /// The machines of a NodePool that are stuck now.
    pub(super) fn open_of_pool(&self, pool: &str) -> impl Iterator<Item = &NodeDiagnosis> {
        let all = self.of_pool(pool).flat_map(|(incident, ..)| self.of(incident));
        all.filter(|diagnosis| diagnosis.is_open())
    }

    /// All diagnoses of an incident, ended ones too.
    pub(super) fn of(&self, incident: &Incident) -> impl Iterator<Item = &NodeDiagnosis> {
        let names = self
            .incidents
            .get(incident)
            .into_iter()
            .flat_map(|m| m.open.iter().chain(m.ended.iter().map(|(_, _, name)| name)));
        names.filter_map(|name| self.get(name))
    }

    /// Earlier machines of an incident.
    pub(super) fn machines(&self, incident: &Incident) -> u32 {
        self.incidents.get(incident).map_or(0, |members| members.machines)
    }

    pub(super) fn insert(&mut self, diagnosis: Arc<NodeDiagnosis>) {
        let Some(name) = diagnosis.metadata.name.clone() else { return };
        let incident = Incident::of(&diagnosis);
        // Counted before it is taken out: it may be the only member.
        let machines = self.machines(&incident).max(diagnosis.recurrences().saturating_add(1));
        self.remove(&name);
        let members = self.incidents.entry(incident.clone()).or_default();
        members.machines = machines;
        if diagnosis.is_open() {
            members.open.insert(name.clone());
        } else {
            members.ended.insert(rank(&diagnosis, &name));
            if let Some(at) = ended_at(&diagnosis) {
                self.by_end.insert((at, name.clone()));
            }
            self.grown.insert(incident);
        }
        self.by_name.insert(name, diagnosis);
        self.revision += 1;
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Arc<NodeDiagnosis>> {
        let diagnosis = self.by_name.remove(name)?;
        self.revision += 1;
        if let Some(at) = ended_at(&diagnosis) {
            self.by_end.remove(&(at, name.to_owned()));
        }
        let incident = Incident::of(&diagnosis);
        if let Some(members) = self.incidents.get_mut(&incident) {
            members.open.remove(name);
            members.ended.remove(&rank(&diagnosis, name));
            if members.open.is_empty() && members.ended.is_empty() {
                self.incidents.remove(&incident);
            }
        }
        Some(diagnosis)
    }

    /// When the next one is to be forgotten.
    pub(super) fn next_end(&self) -> Option<DateTime<Utc>> {
        self.by_end.first().and_then(|(at, _)| at.checked_add_signed(self.keep.retention))
    }

    /// Takes out what is no longer kept: too old, or too many of one incident, those that fell ill first. What
    /// remediation must not forget stays beyond that number; its budget bounds it.
    pub(super) fn forget(&mut self, now: DateTime<Utc>) -> Vec<Arc<NodeDiagnosis>> {
        let mut names = Vec::new();
        for incident in std::mem::take(&mut self.grown) {
            let Some(members) = self.incidents.get(&incident) else { continue };
            let surplus = members.ended.len().saturating_sub(self.keep.history);
            let forgettable =
                |name: &&String| !self.get(name).is_some_and(|diagnosis| remediation::needs(diagnosis, now));
            names.extend(members.ended.iter().map(|(_, _, name)| name).filter(forgettable).take(surplus).cloned());
        }
        let old = self
            .by_end
            .iter()
            .take_while(|(at, _)| at.checked_add_signed(self.keep.retention).is_some_and(|end| end <= now));
        names.extend(old.map(|(_, name)| name.clone()));
        names.iter().filter_map(|name| self.remove(name)).collect()
    }
}

fn ended_at(diagnosis: &NodeDiagnosis) -> Option<DateTime<Utc>> {
    diagnosis.status.as_ref().filter(|s| s.outcome.is_some()).and_then(|s| s.ended_at)
}

fn rank(diagnosis: &NodeDiagnosis, name: &str) -> Rank {
    (diagnosis.recurrences(), ended_at(diagnosis), name.to_owned())
}
