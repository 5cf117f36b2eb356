//! What was written of machines that were stuck, incident by incident, the newest first.

use super::visible::in_a_line;
use super::{Error, columns};
use chrono::{DateTime, TimeDelta, Utc};
use engine::api::pool_machines::PoolMachines;
use engine::api::{Confidence, EarlierVerdict, NodeDiagnosis, NodeDiagnosisStatus, Outcome, Stage};
use engine::case::{duration, timestamp};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

const HEAD: [&str; 8] = ["SINCE", "MACHINE", "NODEPOOL", "STAGE", "CAUSE", "CONFIDENCE", "OUTCOME", "WAITED"];

/// The column of the name.
const MACHINE: usize = 1;

/// One verdict: its row, and the details for the full view.
struct Entry {
    /// The time of its last change.
    at: DateTime<Utc>,
    since: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    /// Node class, NodePool and cause: the verdicts about one incident have the same.
    incident: (String, String, String),
    /// Whether it is about a NodePool, and so about all its machines.
    of_pool: bool,
    cells: [String; HEAD.len()],
    details: Vec<String>,
}

impl Entry {
    /// Whether this verdict about a NodePool covers that one, about a machine.
    fn covers(&self, machine: &Self) -> bool {
        let begins_before = |one: &Self, other: &Self| other.ended_at.is_none_or(|ended| one.since <= ended);
        begins_before(self, machine) && begins_before(machine, self)
    }
}

/// Entries with a verdict, for the named machine, NodePool or node class if there is a name. The latest change comes
/// first.
pub fn of(diagnoses: Vec<NodeDiagnosis>, name: Option<&str>) -> Vec<NodeDiagnosis> {
    let mut told: Vec<NodeDiagnosis> =
        diagnoses.into_iter().filter(|d| d.status.is_some() && name.is_none_or(|name| is_about(d, name))).collect();
    told.sort_by_cached_key(|d| {
        let times = d.status.as_ref().map(|status| status.ended_at.unwrap_or(status.first_observed_at));
        (Reverse(times), d.metadata.name.clone())
    });
    told
}

/// Whether it is about this machine, NodePool or node class.
pub fn is_about(diagnosis: &NodeDiagnosis, name: &str) -> bool {
    let spec = &diagnosis.spec;
    let machines = [&spec.node_claim, &spec.node].into_iter().flatten().map(|named| &named.name);
    let groups = [&spec.node_pool, &spec.node_class].into_iter().flatten().map(|named| &named.name);
    std::iter::once(&spec.subject.name).chain(machines).chain(groups).any(|known| known == name)
}

/// One line each, incident by incident; in full also what was said of it, and how it ended.
pub fn text(diagnoses: &[NodeDiagnosis], in_full: bool, now: DateTime<Utc>) -> String {
    if diagnoses.is_empty() {
        return "There is no NodeDiagnosis: nothing was stuck, or the operator (nodewhy run) does not run here.\n"
            .into();
    }
    let entries = by_incident(diagnoses.iter().flat_map(|d| entries(d, now)).collect());
    let mut lines = columns::lines(&HEAD, entries.iter().map(|entry| &entry.cells[..])).into_iter();
    let mut out = lines.next().unwrap_or_default();
    for (entry, line) in entries.iter().zip(lines) {
        out += &line;
        for detail in entry.details.iter().filter(|_| in_full) {
            out.extend(["    ", &in_a_line(detail), "\n"]);
        }
    }
    out
}

/// The verdicts of one incident together, the latest change first. The NodePool of an incident comes before its
/// machines.
fn by_incident(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|entry| Reverse(entry.at));
    let (heads, machines): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(|entry| entry.of_pool);
    let mut of_pool: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (group, head) in heads.iter().enumerate() {
        of_pool.entry(head.incident.1.clone()).or_default().push(group);
    }
    let mut without_pool = BTreeMap::new();
    let mut groups: Vec<Vec<Entry>> = heads.into_iter().map(|head| vec![head]).collect();
    for mut machine in machines {
        let known = of_pool.get(&machine.incident.1).map_or(&[][..], Vec::as_slice);
        let covered = known.iter().copied().find(|group| groups[*group][0].covers(&machine));
        let group = covered.unwrap_or_else(|| {
            *without_pool.entry(machine.incident.clone()).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            })
        });
        if covered.is_some() {
            machine.cells[MACHINE].insert_str(0, "  ");
        }
        groups[group].push(machine);
    }
    groups.sort_by_key(|group| Reverse(group.iter().map(|entry| entry.at).max()));
    groups.into_iter().flatten().collect()
}

/// The verdict that stands, and those that stood under its name before.
fn entries(diagnosis: &NodeDiagnosis, now: DateTime<Utc>) -> Vec<Entry> {
    let Some(status) = &diagnosis.status else { return Vec::new() };
    let subject = &diagnosis.spec.subject;
    let machine = match subject.kind.as_str() {
        "NodeClaim" | "Node" => subject.name.clone(),
        kind => format!("{kind}/{}", subject.name),
    };
    let pool = diagnosis.spec.node_pool.as_ref().map_or_else(|| "<none>".to_owned(), |pool| pool.name.clone());
    let cells =
        |stage: Stage, cause: &str, confidence: Confidence, since, ended_at: Option<_>, outcome: Option<Outcome>| {
            [
                timestamp(since).to_string(),
                machine.clone(),
                pool.clone(),
                format!("{stage:?}"),
                cause.to_string(),
                format!("{confidence:?}"),
                outcome.map_or_else(|| "stuck".to_owned(), |outcome| format!("{outcome:?}")),
                duration(ended_at.unwrap_or(now) - since),
            ]
        };
    let ended = status.conditions.iter().find(|c| c.type_ == "Ended").map(|ended| format!("{}.", ended.message));
    let counted = status.machines.as_deref().map(counted);
    let NodeDiagnosisStatus { stage, cause, confidence, summary, first_observed_at: since, ended_at, outcome, .. } =
        status;
    let class = diagnosis.spec.node_class.as_ref().map_or_else(String::new, |class| class.name.clone());
    let incident = |cause: &str| (class.clone(), pool.clone(), cause.to_owned());
    let of_pool = matches!(subject.kind.as_str(), "NodePool" | "Provisioner");
    let standing = Entry {
        at: ended_at.unwrap_or(*since),
        since: *since,
        ended_at: *ended_at,
        incident: incident(cause),
        of_pool,
        cells: cells(*stage, cause, *confidence, *since, *ended_at, *outcome),
        details: [Some(summary.to_string()), counted, ended].into_iter().flatten().collect(),
    };
    let earlier = status.earlier.iter().map(|earlier| {
        let EarlierVerdict { uid: _, stage, cause, confidence, summary, first_observed_at: since, ended_at, outcome } =
            earlier;
        Entry {
            at: *ended_at,
            since: *since,
            ended_at: Some(*ended_at),
            incident: incident(cause),
            of_pool,
            cells: cells(*stage, cause, *confidence, *since, Some(*ended_at), Some(*outcome)),
            details: vec![summary.to_string()],
        }
    });
    std::iter::once(standing).chain(earlier).collect()
}

/// The counts that a NodePool has for its machines.
fn counted(machines: &PoolMachines) -> String {
    let causes: Vec<_> = machines
        .causes
        .iter()
        .map(|of| format!("{}: {} of {} machines still stuck", of.cause, of.stuck, of.so_far))
        .collect();
    let mut said = causes.join(", ");
    if machines.failed_launches > 0 {
        let ran = TimeDelta::try_seconds(i64::try_from(machines.failed_launch_seconds).unwrap_or(i64::MAX));
        let ran = ran.map_or_else(String::new, |ran| format!(", and the instances ran for {}", duration(ran)));
        let launches = if machines.failed_launches == 1 { "launch" } else { "launches" };
        said = format!("{said}; {} {launches} failed{ran}", machines.failed_launches);
    }
    match &machines.last_joined {
        Some(last) => format!("{said}; {} joined last, at {}.", last.name, timestamp(last.at)),
        None => format!("{said}; no machine that still exists has joined."),
    }
}

/// A list as kubectl prints it.
fn list(diagnoses: &[NodeDiagnosis]) -> Value {
    json!({"apiVersion": "v1", "kind": "List", "items": diagnoses})
}

pub fn json(diagnoses: &[NodeDiagnosis]) -> Result<String, Error> {
    Ok(super::json(&list(diagnoses))? + "\n")
}

pub fn yaml(diagnoses: &[NodeDiagnosis]) -> Result<String, Error> {
    super::yaml(&list(diagnoses))
}
