//! The history of one machine, in order, from its objects, their Events and its logs.
//!
//! A verdict says why. An incident report also needs when.

use crate::api::{NodeDiagnosis, Outcome};
use crate::cluster_state::ClusterState;
use crate::objects::{Condition, Event, Node, NodeClaim};
use chrono::{DateTime, Utc};
use logs::journey::Journey;
use readers::source_text;

/// One event in the history of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub at: DateTime<Utc>,
    pub turn: Turn,
    /// In words, masked.
    pub says: String,
}

/// The kind of a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Turn {
    /// The NodeClaim or Node was created.
    Created,
    /// It passed a step on its way to Ready.
    Passed,
    /// A condition changed.
    Condition,
    /// An Event of type Normal.
    Event,
    /// An Event of type Warning.
    Warning,
    /// Its deletion was requested, or it ended.
    Deleted,
    /// The time when Karpenter will delete it.
    Deadline,
}

/// Maximum Events of one machine. The newest are shown, because a machine that keeps failing repeats the same Event.
const EVENTS: usize = 20;

/// The history of the machine of a diagnosis, the earliest moment first. The machine may be gone.
pub fn moments(cluster: &ClusterState, diagnosis: &NodeDiagnosis) -> Vec<Moment> {
    let spec = &diagnosis.spec;
    let claim = spec.node_claim.as_ref().and_then(|named| cluster.claim(&named.name));
    let node = spec.node.as_ref().and_then(|named| cluster.node(&named.name));
    let mut moments = Vec::new();
    if let Some(claim) = claim {
        of_claim(claim, &mut moments);
    }
    if let Some(node) = node {
        of_node(node, claim.is_some(), &mut moments);
    }
    let subject = (spec.subject.kind.as_str(), spec.subject.name.as_str());
    let named = [("NodeClaim", spec.node_claim.as_ref()), ("Node", spec.node.as_ref())];
    let mut about: Vec<(&str, &str)> =
        named.into_iter().filter_map(|(kind, named)| Some((kind, named?.name.as_str()))).collect();
    if !about.contains(&subject) {
        about.push(subject);
    }
    of_events(about.iter().flat_map(|(kind, name)| cluster.events(kind, name)), &mut moments);
    for of_machine in cluster.logs_of(claim, node).iter().filter(|of_machine| of_machine.is_named) {
        of_log(&of_machine.log.journey, &mut moments);
    }
    if let Some(log) = cluster.log(&spec.subject.name).filter(|_| spec.subject.kind == "Instance") {
        of_log(&log.journey, &mut moments);
    }
    if let Some(status) = &diagnosis.status {
        moments.extend(status.outcome.zip(status.ended_at).map(|(outcome, at)| ended(outcome, at)));
        let deadline = status.terminates_at.filter(|_| status.outcome.is_none());
        moments.extend(deadline.map(|at| moment(at, Turn::Deadline, "Karpenter's timeout")));
    }
    moments.sort_by_key(|moment| (moment.at, moment.turn));
    moments
}

fn moment(at: DateTime<Utc>, turn: Turn, says: impl Into<String>) -> Moment {
    Moment { at, turn, says: says.into() }
}

fn of_claim(claim: &NodeClaim, moments: &mut Vec<Moment>) {
    let created = claim.metadata.creation_timestamp;
    moments.extend(created.map(|at| moment(at, Turn::Created, "NodeClaim created")));
    for condition in &claim.status.conditions {
        // Karpenter first writes every condition as Unknown, which is not a change.
        let Some(at) = condition.last_transition_time.filter(|at| condition.is_true() || Some(*at) > created) else {
            continue;
        };
        let passed = condition.is_true()
            && ["Launched", "Registered", "Initialized"].iter().any(|step| condition.type_ == *step);
        moments.push(if passed {
            let instance = claim.instance_id().filter(|_| condition.type_ == "Launched");
            let instance = instance.map_or_else(String::new, |id| format!(": {id}"));
            moment(at, Turn::Passed, format!("{}{instance}", condition.type_))
        } else {
            turned("NodeClaim", condition, at)
        });
    }
    let deleted = claim.metadata.deletion_timestamp;
    moments.extend(deleted.map(|at| moment(at, Turn::Deleted, "deletion of the NodeClaim asked for")));
}

fn of_node(node: &Node, has_claim: bool, moments: &mut Vec<Moment>) {
    let joined = if has_claim { Turn::Passed } else { Turn::Created };
    moments.extend(node.metadata.creation_timestamp.map(|at| moment(at, joined, "joined: Node created")));
    for condition in &node.status.conditions {
        // Ready, NetworkingReady and the like are True on a healthy Node, all others False.
        let is_fine = if condition.type_.ends_with("Ready") { condition.is_true() } else { condition.is_false() };
        let Some(at) = condition.last_transition_time.filter(|_| !is_fine || condition.type_ == "Ready") else {
            continue;
        };
        moments.push(if is_fine { moment(at, Turn::Passed, "Node Ready") } else { turned("Node", condition, at) });
    }
    let deleted = node.metadata.deletion_timestamp;
    moments.extend(deleted.map(|at| moment(at, Turn::Deleted, "deletion of the Node asked for")));
}

fn turned(kind: &str, condition: &Condition, at: DateTime<Utc>) -> Moment {
    moment(at, Turn::Condition, source_text::mask(&format!("{kind} {}: {}", condition.type_, condition.shown())))
}

fn of_events<'e>(events: impl Iterator<Item = &'e Event>, moments: &mut Vec<Moment>) {
    let mut newest: Vec<(DateTime<Utc>, &Event)> =
        events.filter_map(|event| Some((event.last_seen()?, event))).collect();
    newest.sort_by(|(a, this), (b, that)| (b, &this.reason).cmp(&(a, &that.reason)));
    newest.truncate(EVENTS);
    for (last, event) in newest {
        let turn = if event.type_ == "Warning" { Turn::Warning } else { Turn::Event };
        let since = event.first_timestamp.filter(|first| *first < last);
        let times = match (event.times(), since) {
            (1, _) => String::new(),
            (times, None) => format!(" ({times} times)"),
            (times, Some(first)) => format!(" ({times} times since {})", first.format("%H:%M:%S")),
        };
        moments.push(moment(last, turn, format!("{}: {}{times}", event.reason, event.said())));
    }
}

fn of_log(journey: &Journey, moments: &mut Vec<Moment>) {
    moments.extend(journey.milestones.iter().filter_map(|(phase, milestone)| {
        Some(moment(milestone.first.time?, Turn::Passed, format!("by its log, {}", phase.in_words())))
    }));
}

fn ended(outcome: Outcome, at: DateTime<Utc>) -> Moment {
    match outcome {
        Outcome::Recovered => moment(at, Turn::Passed, "recovered"),
        Outcome::Terminated => moment(at, Turn::Deleted, "deleted by Karpenter's timeout"),
        Outcome::Deleted => moment(at, Turn::Deleted, "deleted"),
    }
}
