//! The only part that writes to the cluster.
//!
//! The newest diagnosis of a name wins: while one waits or is retried, a later one takes its place. Writes have a rate,
//! a bound on how many are under way, and a timeout each, because kube has none for reading an answer. Only a replica
//! that leads writes, and only what was ordered since it leads.

mod brake;
mod event;
mod fence;
pub mod node_condition;
mod queue;
pub mod remedy;
mod retry_after;
mod status;

use crate::kube_client::failure;
use crate::operator::lease::{Leads, right_in};
use crate::operator::metrics::{Metrics, WriteResult};
use brake::Brake;
use engine::api::NodeDiagnosis;
use engine::triage::change::Change;
use engine::triage::{Delete, FindingNotice, IncidentSummary, Write};
use kube::Client;
use queue::{Queue, WaitingTask};
use retry_after::RetryAfter;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// The writes that nodewhy needs, by group, resource, verbs and namespace. A test compares them with RBAC. Events about
/// objects without namespace are kept in `default`, those about aws-auth in its own namespace.
pub const WRITES: &[(&str, &str, &[&str], Option<&str>)] = &[
    ("nodewhy.dev", "nodediagnoses", &["list", "watch", "create", "patch", "delete"], None),
    ("nodewhy.dev", "nodediagnoses/status", &["patch"], None),
    ("events.k8s.io", "events", &["create", "patch"], Some("default")),
    ("events.k8s.io", "events", &["create"], Some("kube-system")),
];

/// Maximum diagnoses per second.
const RATE: u32 = 20;
const UNDER_WAY: usize = 4;
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long a verdict waits for its Event.
const COURTESY: Duration = Duration::from_secs(2);
/// Between two Events that the last leader may have sent, or that are about the configuration. Verdicts fit in between.
const REPEAT: Duration = Duration::from_millis(200);
/// Number of diagnoses that may wait before the sender waits.
const QUEUE: usize = 256;

/// One write, and the term in which it was decided.
#[derive(Debug)]
pub struct Task {
    pub term: u64,
    pub work: Work,
}

/// One thing to write.
#[derive(Debug)]
pub enum Work {
    Write(Box<Write>),
    Delete(Delete),
    Summarize(Box<IncidentSummary>),
    /// The Event of a verdict that is written already. The replica that wrote it may not have sent the Event.
    Announce(Arc<NodeDiagnosis>),
    /// The Event about a mistake of the configuration.
    Notice(Box<FindingNotice>),
}

impl Work {
    fn speaks_for_many(&self) -> bool {
        match self {
            Self::Write(write) => write.diagnosis.speaks_for_machines(),
            Self::Delete(_) | Self::Announce(_) | Self::Notice(_) => false,
            Self::Summarize(_) => true,
        }
    }

    /// Whether it writes an Event, and no NodeDiagnosis.
    const fn is_courtesy(&self) -> bool {
        matches!(self, Self::Summarize(_) | Self::Announce(_) | Self::Notice(_))
    }

    /// The newest of a key wins. No name of an object begins with a slash.
    fn key(&self) -> String {
        match self {
            Self::Write(write) => write.diagnosis.metadata.name.clone().unwrap_or_default(),
            Self::Delete(delete) => delete.name.clone(),
            Self::Announce(diagnosis) => format!("//{}", diagnosis.metadata.name.as_deref().unwrap_or_default()),
            Self::Notice(notice) => format!("///{}/{}", notice.regarding.uid, notice.identity),
            Self::Summarize(summary) => {
                let names = summary.regarding.iter().flat_map(|r| ["/", r.name.as_str()]);
                ["/", &summary.cause].into_iter().chain(names).collect()
            }
        }
    }
}

/// Starts to publish. It ends when the sender is dropped and everything is written. `told` hears of deletions at once.
pub fn start(
    client: Client,
    instance: String,
    leads: Leads,
    metrics: Arc<Metrics>,
    told: mpsc::WeakSender<Change>,
) -> (mpsc::Sender<Task>, JoinHandle<()>) {
    let (tasks, received) = mpsc::channel(QUEUE);
    let retry_after = RetryAfter::default();
    let publisher = Publisher {
        client: retry_after.heeding(client),
        writer: None,
        instance: instance.into(),
        retry_after,
        brake: Brake::default(),
        leads,
        metrics,
        told,
        started: Instant::now(),
        term: None,
        queue: Queue::default(),
        next_repeat: Instant::now(),
        failing: false,
    };
    (tasks, tokio::spawn(publisher.run(received)))
}

#[derive(Debug)]
enum WriteFailure {
    /// The API server will refuse it the next time too.
    Refused(String),
    Failed(String),
    TimedOut,
}

struct Publisher {
    client: Client,
    /// Writes in the present term.
    writer: Option<Writer>,
    /// The replica that reports Events.
    instance: Arc<str>,
    retry_after: RetryAfter,
    brake: Brake,
    leads: Leads,
    metrics: Arc<Metrics>,
    told: mpsc::WeakSender<Change>,
    started: Instant,
    /// The term in which all was decided that is in the queue.
    term: Option<u64>,
    queue: Queue,
    /// When the next Event may be sent that the last leader may have sent, or that is about the configuration.
    next_repeat: Instant,
    /// The last write failed: said once, not for each that follows.
    failing: bool,
}

impl Publisher {
    async fn run(mut self, mut tasks: mpsc::Receiver<Task>) {
        let mut ticks = interval(Duration::from_secs(1) / RATE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut under_way = JoinSet::new();
        let mut open = true;
        while open || !self.queue.is_empty() || !under_way.is_empty() {
            self.follow_the_lease();
            let has_room = under_way.len() < self.brake.abreast(UNDER_WAY);
            let next = if has_room && self.right().is_some() { self.queue.next() } else { None };
            let next = next.map(|due| self.brake.delay(due));
            tokio::select! {
                // In this order, not in a random one, so that what happened can be made to happen again.
                biased;
                task = tasks.recv(), if open => match task {
                    Some(task) => self.take(task),
                    None => open = false,
                },
                Some(done) = under_way.join_next() => {
                    if let Ok((waiting, begun, result)) = done {
                        self.done(waiting, begun, result);
                    }
                }
                Ok(()) = self.leads.changed() => {}
                () = until(next) => {
                    ticks.tick().await;
                    self.follow_the_lease();
                    if let Some(lasts) = self.right()
                        && let Some(writer) = self.writer.clone()
                        && let Some(waiting) = self.queue.begin()
                    {
                        under_way.spawn(async move {
                            let begun = Instant::now();
                            let result = writer.carry_out(&waiting.task.work, TIMEOUT.min(lasts)).await;
                            (waiting, begun, result)
                        });
                    }
                }
            }
        }
    }

    /// How long this replica may still write.
    fn right(&self) -> Option<Duration> {
        right_in(&self.leads, self.term?)
    }

    /// Drops what was ordered before another replica led: that one has done or undone it.
    fn follow_the_lease(&mut self) {
        let term = self.leads.borrow().map(|leadership| leadership.term);
        if term != self.term {
            self.term = term;
            self.writer = term.map(|term| Writer {
                client: fence::fenced(self.client.clone(), self.leads.clone(), term),
                instance: Arc::clone(&self.instance),
            });
            self.queue.retain(term);
            self.metrics.queue(self.queue.len());
        }
    }

    fn take(&mut self, task: Task) {
        self.follow_the_lease();
        if Some(task.term) == self.term {
            let now = Instant::now();
            let not_before = match &task.work {
                // One that speaks for many does not wait behind them.
                work if work.speaks_for_many() => self.started,
                Work::Announce(_) | Work::Notice(_) => {
                    let at = self.next_repeat.max(now);
                    self.next_repeat = at + REPEAT;
                    at
                }
                _ => now,
            };
            self.queue.put(task, not_before);
            self.metrics.queue(self.queue.len());
        }
    }

    fn done(&mut self, waiting: WaitingTask, begun: Instant, result: Result<(), WriteFailure>) {
        self.follow_the_lease();
        let key = waiting.task.work.key();
        let failure = match result {
            // An Event says nothing about whether NodeDiagnoses can be written.
            Ok(()) if waiting.task.work.is_courtesy() => return self.finished(&key),
            Ok(()) => {
                self.metrics.wrote(WriteResult::Ok);
                if std::mem::take(&mut self.failing) {
                    tracing::info!("NodeDiagnoses can be written again");
                }
                if let (Work::Delete(delete), Some(told)) = (&waiting.task.work, self.told.upgrade()) {
                    // The watch says the same, unless the object was never there. A full queue only means that the name
                    // is kept in mind.
                    let _ = told.try_send(Change::DiagnosisGone(delete.name.clone()));
                }
                None
            }
            Err(WriteFailure::Refused(why)) => {
                self.metrics.wrote(WriteResult::Refused);
                tracing::error!(name = key, why, "the API server rejected the NodeDiagnosis");
                None
            }
            Err(WriteFailure::Failed(why)) => {
                self.metrics.wrote(WriteResult::Error);
                Some(why)
            }
            Err(WriteFailure::TimedOut) => {
                self.metrics.wrote(WriteResult::Timeout);
                Some("no answer in time".to_owned())
            }
        };
        let now = Instant::now();
        let asked = self.retry_after.take(now);
        match &failure {
            None => self.brake.succeeded(),
            Some(_) => self.brake.failed(begun, now, asked),
        }
        if let Some(why) = &failure
            && !std::mem::replace(&mut self.failing, true)
        {
            tracing::warn!(name = key, why, "NodeDiagnoses cannot be written; nodewhy tries again until it can");
        }
        if failure.is_some() && Some(waiting.task.term) == self.term {
            self.queue.failed(waiting, now);
            self.metrics.queue(self.queue.len());
        } else {
            self.finished(&key);
        }
    }

    fn finished(&mut self, key: &str) {
        self.queue.finished(key);
        self.metrics.queue(self.queue.len());
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What a single write takes.
#[derive(Clone)]
struct Writer {
    client: Client,
    instance: Arc<str>,
}

impl Writer {
    async fn carry_out(&self, work: &Work, within: Duration) -> Result<(), WriteFailure> {
        match work {
            Work::Write(write) => {
                timeout(within, self.write(write)).await.unwrap_or(Err(WriteFailure::TimedOut))?;
                // The write has succeeded even if the Event fails.
                if write.announces {
                    self.announce(&write.diagnosis).await;
                }
            }
            Work::Delete(delete) => {
                let deleted = timeout(within, status::delete(&self.client, delete)).await;
                deleted
                    .map_err(|_| WriteFailure::TimedOut)?
                    .map_err(|error| WriteFailure::Failed(failure::of(&error).to_string()))?;
            }
            Work::Summarize(summary) => {
                courtesy(&summary.cause, event::summarize(&self.client, &self.instance, summary)).await;
            }
            Work::Announce(diagnosis) => self.announce(diagnosis).await,
            Work::Notice(notice) => courtesy(&notice.cause, event::notice(&self.client, &self.instance, notice)).await,
        }
        Ok(())
    }

    async fn write(&self, write: &Write) -> Result<(), WriteFailure> {
        status::write(&self.client, write).await.map_err(|error| match &error {
            kube::Error::Api(answer) if answer.is_invalid() => WriteFailure::Refused(failure::said(&answer.message)),
            other => WriteFailure::Failed(failure::of(other).to_string()),
        })
    }

    async fn announce(&self, diagnosis: &NodeDiagnosis) {
        let name = diagnosis.metadata.name.as_deref().unwrap_or_default();
        courtesy(name, event::announce(&self.client, &self.instance, diagnosis)).await;
    }
}

/// An Event is not tried again, and no verdict waits long for it.
async fn courtesy(of: &str, event: impl Future<Output = kube::Result<()>>) {
    match timeout(COURTESY, event).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(of, error = failure::of(&error).to_string(), "an Event could not be written"),
        Err(_) => tracing::warn!(of, "an Event could not be written in time"),
    }
}

#[cfg(test)]
mod tests;
