//! Reads logs in the namespaces that you allowed: those of the pods that open verdicts point to.
//!
//! It reads few logs at a time and each one rarely, because a stuck machine does not make them urgent.

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
use tokio::task::JoinSet;

/// Time between two looks at open verdicts.
const EVERY: TimeDelta = TimeDelta::seconds(5);
/// Minimum time between two reads of a log.
const AGAIN: TimeDelta = TimeDelta::minutes(5);
/// Logs that were not needed for this long are dropped. Pods come and go, and each has a log.
const KEPT: TimeDelta = TimeDelta::hours(1);
/// Limits of each look. Pods are read one after the other.
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
    /// When each log was last read.
    read: BTreeMap<String, DateTime<Utc>>,
}

impl ReadLogs {
    /// Starts reading. The logs arrive as changes.
    pub fn start(
        namespaces: BTreeSet<String>,
        client: Client,
        changes: mpsc::Sender<Change>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        // The next look asks again.
        let (asked, questions) = mpsc::channel(1);
        tasks.spawn(answer(client, questions, changes));
        Self { namespaces, asked, next: DateTime::UNIX_EPOCH, read: BTreeMap::new() }
    }

    /// Requests the logs for open verdicts that were not read lately.
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
        let of_waiting = triage
            .log_of_waiting_pods(now)
            .filter(|own| self.namespaces.contains(own.namespace()) && !self.read.contains_key(&own.name()));
        due.extend(of_waiting.map(|own| (own.name(), own)));
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
    let mut said = Lately::default();
    let mut agents = Lately::default();
    // Of whom Karpenter has complained: what it no longer says is over.
    let mut complained: BTreeSet<String> = BTreeSet::new();
    while let Some((sources, now)) = questions.recv().await {
        let read = read(&client, &sources, LIMITS, now).await;
        for note in &read.notes {
            if said.take(note, now) {
                tracing::warn!(note, "a log cannot be read; nodewhy continues without it");
            }
        }
        said.forget(now);
        let of_karpenter = sources.iter().any(|source| matches!(source, LogSource::Karpenter { .. }));
        let (of_agents, spoken_of): (Vec<_>, Vec<_>) =
            read.logs.into_iter().partition(|log| !log.journey.identity.pods.is_empty());
        let mut told = Vec::new();
        if of_karpenter && read.notes.is_empty() {
            let names: BTreeSet<String> = spoken_of.iter().map(|log| log.metadata.name.to_string()).collect();
            told.extend(complained.difference(&names).cloned().map(removed));
            complained = names;
        }
        for log in &of_agents {
            agents.take(&log.metadata.name, now);
        }
        told.extend(agents.forget(now).into_iter().map(removed));
        let logs = of_agents.into_iter().chain(spoken_of);
        told.extend(logs.map(|log| Change::Applied(Box::new(Object::MachineLog(log)))));
        for change in told {
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }
}

fn removed(log: String) -> Change {
    Change::Removed { input: Input::Logs, namespace: None, name: log, last: None }
}

/// The names seen within the last hour.
#[derive(Debug, Default)]
struct Lately(BTreeMap<String, DateTime<Utc>>);

impl Lately {
    /// Records a name. Returns whether it is new.
    fn take(&mut self, name: &str, now: DateTime<Utc>) -> bool {
        self.0.insert(name.to_owned(), now).is_none()
    }

    /// Drops and returns the names that were not seen again.
    fn forget(&mut self, now: DateTime<Utc>) -> Vec<String> {
        self.0.extract_if(.., |_, at| now - *at >= KEPT).map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Lately};
    use chrono::{DateTime, TimeDelta};

    #[test]
    fn what_is_not_met_again_is_forgotten_after_an_hour() {
        let start = DateTime::UNIX_EPOCH;
        let mut lately = Lately::default();
        assert!(lately.take("aws-node-1", start) && lately.take("aws-node-2", start));
        assert!(!lately.take("aws-node-1", start + TimeDelta::minutes(5)), "it was met before");
        assert_eq!(lately.forget(start + KEPT), ["aws-node-2"]);
        assert!(lately.forget(start + KEPT).is_empty(), "each is forgotten once");
    }
}
