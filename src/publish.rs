//! The only part that writes to the cluster.
//!
//! The newest diagnosis of a name wins: while one waits or is retried, a later one takes its place. Writes have a rate, a bound on
//! how many are under way, and a timeout each, because kube has none for reading an answer.

mod event;
mod status;

use crate::metrics::{Metrics, WriteResult};
use crate::triage::Write;
use kube::Client;
use kube::runtime::events::Recorder;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// The field manager of every write, and the reporter of every Event.
pub const MANAGER: &str = "nodewhy";

/// What may be written, by group, resource, verbs and namespace: RBAC is compared with it. Events about objects without
/// namespace are kept in `default`.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[
    ("nodewhy.dev", "nodediagnoses", &["list", "create", "patch", "delete"], None),
    ("nodewhy.dev", "nodediagnoses/status", &["patch"], None),
    ("events.k8s.io", "events", &["create", "patch"], Some("default")),
];

/// Diagnoses a second at most.
const RATE: u32 = 20;
const UNDER_WAY: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_mins(1);
/// Diagnoses that may be handed over before the one that hands over waits.
const QUEUE: usize = 256;

pub use status::list;

/// Starts to publish. It ends when the sender is dropped and everything is written.
#[must_use]
pub fn start(client: Client, metrics: Arc<Metrics>) -> (mpsc::Sender<Write>, JoinHandle<()>) {
    let (orders, received) = mpsc::channel(QUEUE);
    let recorder = Recorder::new(client.clone(), MANAGER.into());
    (orders, tokio::spawn(Publisher { client, recorder, metrics, waiting: BTreeMap::new(), busy: BTreeSet::new() }.run(received)))
}

/// A diagnosis that waits to be written.
#[derive(Debug)]
struct Waiting {
    write: Write,
    not_before: Instant,
    retry: Duration,
}

#[derive(Debug)]
enum Failure {
    /// The API server will refuse it the next time too.
    Refused(String),
    Failed(String),
    TimedOut,
}

struct Publisher {
    client: Client,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    waiting: BTreeMap<String, Waiting>,
    busy: BTreeSet<String>,
}

impl Publisher {
    async fn run(mut self, mut orders: mpsc::Receiver<Write>) {
        let mut ticks = interval(Duration::from_secs(1) / RATE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        let mut open = true;
        while open || !self.waiting.is_empty() || !under_way.is_empty() {
            let next = if under_way.len() < UNDER_WAY { self.next() } else { None };
            tokio::select! {
                order = orders.recv(), if open => match order {
                    Some(write) => self.take(write),
                    None => open = false,
                },
                Some(done) = under_way.join_next() => {
                    if let Ok((waiting, result)) = done {
                        self.done(waiting, result);
                    }
                }
                () = until(next.as_ref().map(|(at, _)| *at)) => {
                    ticks.tick().await;
                    if let Some((_, name)) = next
                        && let Some(waiting) = self.waiting.remove(&name)
                    {
                        self.busy.insert(name);
                        let (client, recorder) = (self.client.clone(), self.recorder.clone());
                        under_way.spawn(async move {
                            let result = timeout(TIMEOUT, write(&client, &recorder, &waiting.write)).await.unwrap_or(Err(Failure::TimedOut));
                            (waiting, result)
                        });
                    }
                }
            }
        }
    }

    fn take(&mut self, write: Write) {
        let Some(name) = write.diagnosis.metadata.name.clone() else { return };
        let mut waiting = Waiting { write, not_before: Instant::now(), retry: RETRY_FIRST };
        if let Some(before) = self.waiting.remove(&name) {
            waiting.overtake(&before);
        }
        self.waiting.insert(name, waiting);
        self.metrics.queue(self.waiting.len());
    }

    /// The name that has waited longest, of those that are not being written.
    fn next(&self) -> Option<(Instant, String)> {
        let free = self.waiting.iter().filter(|(name, _)| !self.busy.contains(*name));
        free.min_by_key(|(_, waiting)| waiting.not_before).map(|(name, waiting)| (waiting.not_before, name.clone()))
    }

    fn done(&mut self, mut waiting: Waiting, result: Result<(), Failure>) {
        let Some(name) = waiting.write.diagnosis.metadata.name.clone() else { return };
        self.busy.remove(&name);
        let failure = match result {
            Ok(()) => {
                self.metrics.wrote(WriteResult::Ok);
                tracing::debug!(name, "NodeDiagnosis written");
                None
            }
            Err(Failure::Refused(why)) => {
                self.metrics.wrote(WriteResult::Refused);
                tracing::error!(name, why, "the API server refuses the NodeDiagnosis");
                None
            }
            Err(Failure::Failed(why)) => {
                self.metrics.wrote(WriteResult::Error);
                Some(why)
            }
            Err(Failure::TimedOut) => {
                self.metrics.wrote(WriteResult::Timeout);
                Some(format!("no answer in {} seconds", TIMEOUT.as_secs()))
            }
        };
        if let Some(why) = failure {
            tracing::warn!(name, why, retry_seconds = waiting.retry.as_secs(), "a NodeDiagnosis could not be written");
            if let Some(newer) = self.waiting.get_mut(&name) {
                newer.overtake(&waiting);
            } else {
                waiting.not_before = Instant::now() + waiting.retry;
                waiting.retry = (waiting.retry * 2).min(RETRY_LAST);
                self.waiting.insert(name, waiting);
            }
        }
        self.metrics.queue(self.waiting.len());
    }
}

impl Waiting {
    /// Takes over what the earlier one had still to do.
    fn overtake(&mut self, earlier: &Self) {
        self.write.replaces |= earlier.write.replaces;
        self.write.announces |= earlier.write.announces;
        self.not_before = earlier.not_before;
        self.retry = earlier.retry;
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn write(client: &Client, recorder: &Recorder, write: &Write) -> Result<(), Failure> {
    status::write(client, write).await.map_err(|error| match &error {
        kube::Error::Api(answer) if answer.is_invalid() => Failure::Refused(answer.message.clone()),
        other => Failure::Failed(other.to_string()),
    })?;
    if write.announces {
        // The diagnosis is written; an Event is a courtesy and is not tried again.
        if let Err(error) = event::announce(recorder, &write.diagnosis).await {
            tracing::warn!(name = write.diagnosis.metadata.name, %error, "an Event could not be written");
        }
    }
    Ok(())
}
