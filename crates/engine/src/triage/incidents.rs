//! Incidents: machines of one NodePool and node class that are stuck by one cause. nodewhy reports them together, and
//! again when their number has doubled.

use super::history::{History, Incident};
use crate::api::{NodeDiagnosis, ObjectRef};
use crate::cluster_state::{ClusterState, Subject};
use crate::objects::Meta;
use std::collections::{BTreeMap, BTreeSet};

/// One cause for stuck machines of one NodePool, reported on the NodePool and on its node class.
#[derive(Debug, Clone, PartialEq)]
pub struct IncidentSummary {
    pub cause: String,
    pub note: String,
    /// The NodePool and the node class, those that exist.
    pub regarding: Vec<ObjectRef>,
}

#[derive(Debug, Default)]
pub(super) struct Incidents {
    /// Reported incidents, each with its number of machines at that time.
    summarized: BTreeMap<Incident, usize>,
    /// Incidents that a machine has joined since the last look.
    joined: BTreeSet<Incident>,
}

impl Incidents {
    /// An earlier run that wrote the diagnoses has also reported their incidents.
    pub(super) fn start(&mut self, history: &History) {
        self.summarized = history.incidents().map(|(incident, machines)| (incident.clone(), machines)).collect();
    }

    pub(super) fn join(&mut self, diagnosis: &NodeDiagnosis) {
        self.joined.insert(Incident::of(diagnosis));
    }

    /// Schedules a report of the incident, which no replica has sent yet.
    pub(super) fn tell_again(&mut self, diagnosis: &NodeDiagnosis) {
        self.summarized.remove(&Incident::of(diagnosis));
        self.join(diagnosis);
    }

    /// Summaries of incidents that are new, or that have at least doubled since their last report.
    pub(super) fn summaries(&mut self, history: &History, cluster: &ClusterState) -> Vec<IncidentSummary> {
        let mut summaries = Vec::new();
        for incident in std::mem::take(&mut self.joined) {
            let machines = history.open_of(&incident);
            let told = self.summarized.get(&incident).copied().unwrap_or_default();
            if machines >= told.saturating_mul(2).max(1) {
                let example = history.of(&incident).find(|diagnosis| diagnosis.is_open());
                summaries.extend(example.and_then(|example| summary(cluster, &incident, machines, example)));
                self.summarized.insert(incident, machines);
            }
        }
        self.summarized.retain(|incident, _| history.open_of(incident) > 0);
        summaries
    }
}

/// How many machines of a NodePool are stuck, in words.
pub(super) fn machines_of(pool: &str, machines: usize) -> String {
    match machines {
        1 => format!("1 machine of NodePool {pool} is stuck"),
        _ => format!("{machines} machines of NodePool {pool} are stuck"),
    }
}

fn summary(
    cluster: &ClusterState,
    incident: &Incident,
    machines: usize,
    example: &NodeDiagnosis,
) -> Option<IncidentSummary> {
    // A diagnosis of the NodePool or the node class has its own Event there.
    if !matches!(Subject::of(&example.spec.subject)?, Subject::Claim(_) | Subject::Node(_)) {
        return None;
    }
    let pool = cluster.pool(incident.node_pool.as_ref()?)?;
    let class = &pool.spec.template.spec.node_class_ref;
    let class = cluster.class(&class.kind, &class.name).map(|facts| &facts.class);
    let reference = |api_version: &str, kind: &str, meta: &Meta| ObjectRef {
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        name: meta.name.to_string(),
        uid: meta.uid.to_string(),
    };
    let regarding = [reference("karpenter.sh/v1", "NodePool", &pool.metadata)]
        .into_iter()
        .chain(class.map(|class| reference(&class.api_version, &class.kind, &class.metadata)));
    let stuck = machines_of(pool.name(), machines);
    let summary = example.status.as_ref().map(|s| &*s.summary).unwrap_or_default();
    Some(IncidentSummary {
        cause: incident.cause.clone(),
        note: format!("{stuck}: {summary}"),
        regarding: regarding.collect(),
    })
}
