//! What the operator reads of logs, in the namespaces that it was given: those of the pods that open verdicts point to.
//!
//! Few at a time and each rarely: nothing in a log is urgent to a machine that is stuck.

use crate::ingest::pod_logs::{PodLogLimits, read};
use chrono::{DateTime, TimeDelta, Utc};
use engine::diagnose::log_source::{self, LogSource};
use engine::objects::input::{Input, Object};
use engine::triage::Triage;
use engine::triage::change::Change;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;

/// Between two looks at what is open.
const EVERY: TimeDelta = TimeDelta::seconds(5);
/// A log is read no more often.
const AGAIN: TimeDelta = TimeDelta::minutes(5);
/// Pods at each look, one after the other.
const LIMITS: PodLogLimits = PodLogLimits {
    pods: 3,
    lines: 1_000,
    bytes: 1 << 20,
    abreast: 1,
    answer: Duration::from_secs(5),
    all: Duration::from_secs(15),
};

pub(super) struct ReadLogs {
    namespaces: BTreeSet<String>,
    asked: mpsc::Sender<(Vec<LogSource>, DateTime<Utc>)>,
    next: DateTime<Utc>,
    /// When each was read last.
    read: BTreeMap<String, DateTime<Utc>>,
}

impl ReadLogs {
    /// The logs come as changes.
    pub fn start(namespaces: BTreeSet<String>, client: Client, changes: mpsc::Sender<Change>) -> Self {
        // The next look asks anew.
        let (asked, questions) = mpsc::channel(1);
        tokio::spawn(answer(client, questions, changes));
        Self { namespaces, asked, next: DateTime::UNIX_EPOCH, read: BTreeMap::new() }
    }

    /// Asks for what is open and was not read lately.
    pub fn look(&mut self, triage: &Triage, now: DateTime<Utc>) {
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        self.read.retain(|_, at| now - *at < AGAIN);
        let mut due: BTreeMap<String, LogSource> = BTreeMap::new();
        for (case, verdict) in triage.cases(now, log_source::is_open) {
            let sources = log_source::log_sources(&case, verdict).into_iter().map(|source| (source.name(), source));
            let is_due = |name: &String, source: &LogSource| {
                self.namespaces.contains(source.namespace()) && !self.read.contains_key(name)
            };
            due.extend(sources.filter(|(name, source)| is_due(name, source)));
            if due.len() >= LIMITS.pods {
                break;
            }
        }
        let (names, sources): (Vec<_>, Vec<_>) = due.into_iter().take(LIMITS.pods).unzip();
        if !sources.is_empty() && self.asked.try_send((sources, now)).is_ok() {
            self.read.extend(names.into_iter().map(|name| (name, now)));
        }
    }
}

async fn answer(
    client: Client,
    mut questions: mpsc::Receiver<(Vec<LogSource>, DateTime<Utc>)>,
    changes: mpsc::Sender<Change>,
) {
    let mut said = BTreeSet::new();
    // Of whom Karpenter has complained: what it no longer says is over.
    let mut complained: BTreeSet<String> = BTreeSet::new();
    while let Some((sources, now)) = questions.recv().await {
        let read = read(&client, &sources, LIMITS, now).await;
        for note in &read.notes {
            if said.insert(note.clone()) {
                tracing::warn!(note, "a log cannot be read; the rest works on");
            }
        }
        let of_karpenter = sources.iter().any(|source| matches!(source, LogSource::Karpenter { .. }));
        let (agents, spoken_of): (Vec<_>, Vec<_>) =
            read.logs.into_iter().partition(|log| !log.journey.identity.pods.is_empty());
        let mut told = Vec::new();
        if of_karpenter && read.notes.is_empty() {
            let names: BTreeSet<String> = spoken_of.iter().map(|log| log.metadata.name.to_string()).collect();
            let over = complained.difference(&names);
            told.extend(over.map(|name| Change::Removed {
                input: Input::Logs,
                namespace: None,
                name: name.clone(),
                last: None,
            }));
            complained = names;
        }
        let logs = agents.into_iter().chain(spoken_of);
        told.extend(logs.map(|log| Change::Applied(Box::new(Object::MachineLog(log)))));
        for change in told {
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }
}
