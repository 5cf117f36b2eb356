//! `nodewhy run`: the operator. One task owns the state and decides; watches feed it, the publisher writes what it
//! orders.

pub mod admission;
mod aws_client;
mod aws_questions;
mod connections;
mod descriptors;
mod end;
pub mod health;
pub mod lease;
pub mod metrics;
mod node_conditions;
mod outage;
mod own_thread;
mod page;
pub mod publish;
mod read_logs;
mod remedies;
mod sources;
pub mod watch;

use crate::kube_client::clock::Clock;
use crate::kube_client::{self, ClusterFlags, failure};
use crate::operator::admission::{Admission, AdmissionOptions, Home};
use crate::operator::health::readiness::Readiness;
use crate::operator::health::server::{self, Health};
use crate::operator::lease::{Candidate, Election, Leads};
use crate::operator::metrics::Metrics;
use crate::operator::publish::{Task, Work};
use crate::operator::watch::{Access, Pods, Unwatched, Watches, api_server};
use crate::report::{self, Background};
use chrono::{DateTime, SubsecRound, Utc};
use engine::api::judged::JudgedBy;
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::diagnose::survey::Survey;
use engine::objects::input::{Input, Object};
use engine::remediation::{Doubts, Limits};
use engine::triage::change::{Change, ReadFailure, SourceState, Watched};
use engine::triage::{FindingNotice, Keep, Order, Triage, Write};
pub use node_conditions::NodeConditionMode;
use node_conditions::NodeConditions;
use outage::{Outage, Outages};
use page::LivePage;
use read_logs::ReadLogs;
use remedies::Remedies;
use sources::sources;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

/// Changes that may wait before the watches do.
const CHANGES: usize = 1024;
/// Maximum changes to apply before subjects are judged.
const BATCH: usize = 256;
/// Maximum time between two turns of the loop.
const TURN: Duration = Duration::from_secs(10);
/// The resolution of Tokio's clock.
const MOMENT: Duration = Duration::from_millis(1);
/// While the API server's answers disagree about the time, verdicts wait for this long at most.
const CLOCK_WITHIN: Duration = Duration::from_secs(30);
/// While the time is in doubt, nodewhy asks for it this often.
const ASK_THE_TIME: Duration = Duration::from_millis(1_100);
/// Time limit for the remaining writes at shutdown.
const LAST_WRITES: Duration = Duration::from_secs(5);

/// The options of the operator.
#[derive(Debug, Clone)]
pub struct OperatorOptions {
    pub cluster: ClusterFlags,
    /// Address of /metrics, /livez and /readyz.
    pub listen: SocketAddr,
    /// Address of the page. `None` if it is not served.
    pub page: Option<SocketAddr>,
    /// The admission webhook. `None` if it is off.
    pub admission: Option<AdmissionOptions>,
    pub log_format: LogFormat,
    /// How to ask AWS. `None` if `--aws` is off.
    pub aws: Option<aws::Options>,
    /// The namespaces whose pods' logs may be read.
    pub pod_logs: BTreeSet<String>,
    pub remediation: Limits,
    pub node_condition: NodeConditionMode,
    pub keep: Keep,
    /// Whether several replicas share the work. `lease_namespace` is the namespace of the Lease, by default the own
    /// one.
    pub leader_elect: bool,
    pub lease_namespace: Option<String>,
    /// The name of this replica in the Lease and in Events. It differs for each replica.
    pub identity: Option<String>,
}

impl OperatorOptions {
    fn identity(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        self.identity.clone().unwrap_or_else(|| format!("{}_{}", host().trim(), std::process::id()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

/// Why the operator ended, other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    ClusterFlags(#[from] kube_client::Error),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot receive signals: {0}")]
    Signals(std::io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("a part of the operator died: {0}")]
    Died(String),
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(options: OperatorOptions, thresholds: Thresholds) -> Result<(), Error> {
    // Beside the watches, not on the thread that waits for all of them: most changes then wake no other thread.
    tokio::spawn(operate(options, thresholds)).await.unwrap_or_else(|error| Err(Error::Died(error.to_string())))
}

async fn operate(options: OperatorOptions, thresholds: Thresholds) -> Result<(), Error> {
    log(options.log_format);
    descriptors::raise();
    let told_to_end = end::told().map_err(Error::Signals)?;
    let clock = Arc::new(Clock::default());
    let client = options.cluster.lasting_client(Arc::clone(&clock)).await?;
    let listener = listen(options.listen).await?;
    let page = match options.page {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let admission = match options.admission.clone() {
        Some(admission) => {
            let listener = listen(admission.listen()).await?;
            let home = Home {
                cluster: options.cluster.clone(),
                namespace: options.lease_namespace.clone(),
                clock: Arc::clone(&clock),
            };
            Some(Admission::serve(listener, admission, home).map_err(Error::Thread)?)
        }
        None => None,
    };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listen = %options.listen, "nodewhy starts");

    let metrics = Arc::new(Metrics::default());
    let health = Arc::new(Health::new(Readiness::new(sources())));
    let (stop, mut stopped) = tokio::sync::watch::channel(());
    let until_stopped = async move { drop(stopped.changed().await) };
    let (checked, scraped) = (Arc::clone(&health), Arc::clone(&metrics));
    let server = own_thread::run("probes", move || server::serve(listener, checked, scraped, until_stopped))
        .map_err(Error::Thread)?;

    let identity = options.identity();
    let namespace = options.lease_namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
    let election = options.leader_elect.then(|| Election {
        namespace,
        identity: identity.clone(),
        cluster: options.cluster.clone(),
        clock: Arc::clone(&clock),
    });
    let (mut candidate, leads) = Candidate::new(election);
    let (changes, changed) = mpsc::channel(CHANGES);
    let (tasks, mut publisher) =
        publish::start(client.clone(), identity.clone(), leads.clone(), Arc::clone(&metrics), changes.downgrade());
    let mut watches = Watches::start(client.clone(), changes.clone(), Arc::clone(&metrics));
    // A panic in one of these tasks ends the operator, as a panic in a watch does.
    let beside = watches.tasks();
    let page = page.map(|listener| LivePage::serve(listener, beside));
    beside.spawn(settle_the_time(client.clone(), Arc::clone(&clock)));
    beside.spawn(api_server::follow(client.clone(), changes.clone()));
    let limits = options.remediation;
    let remedies = Remedies::start(client.clone(), &identity, leads.clone(), limits, Arc::clone(&metrics), beside);
    let node_conditions = NodeConditions::start(options.node_condition, client.clone(), leads.clone(), beside);
    let aws = options.aws.clone().map(|aws| aws_questions::AskAws::new(aws, changes.clone()));
    let logs = (!options.pod_logs.is_empty())
        .then(|| ReadLogs::start(options.pod_logs.clone(), client.clone(), changes.clone(), beside));
    let operator = Operator {
        aws,
        logs,
        triage: Triage::new(thresholds, options.keep),
        thresholds,
        page,
        admission,
        pods: Pods::start(client.clone(), changes.clone(), beside),
        access: Access::start(client, changes, beside),
        watches,
        health: &health,
        metrics: &metrics,
        tasks,
        remedies,
        node_conditions,
        leads,
        term: None,
        clock,
        outages: Outages::default(),
        caught_up: false,
        takes_over: false,
    };
    let ended = tokio::select! {
        ended = operator.run(changed, &mut candidate) => ended,
        () = told_to_end => Ok(()),
    };
    // The operator is gone, and the sender of tasks with it: the publisher ends when it has written what it holds.
    tracing::info!("nodewhy ends");
    if timeout(LAST_WRITES, &mut publisher).await.is_err() {
        tracing::warn!("not everything could be written in time; the next start will write it");
        publisher.abort();
    }
    candidate.withdraw().await;
    drop(stop);
    finish(server).await;
    ended
}

/// Asks for the time while answers disagree.
async fn settle_the_time(client: kube::Client, clock: Arc<Clock>) {
    loop {
        clock.doubted().await;
        // The clock hears the answer of every request.
        let pause = if client.apiserver_version().await.is_ok() { ASK_THE_TIME } else { TURN };
        sleep(pause).await;
    }
}

async fn listen(address: SocketAddr) -> Result<std::net::TcpListener, Error> {
    server::bind(address).await.map_err(|error| Error::Listen { address, error })
}

async fn finish(server: oneshot::Receiver<std::io::Result<()>>) {
    if let Ok(Ok(Err(error))) = timeout(Duration::from_secs(1), server).await {
        tracing::warn!(%error, "the HTTP server failed");
    }
}

fn log(format: LogFormat) {
    use tracing_subscriber::EnvFilter;
    // kube logs each request that fails, and each watch that breaks off; we say it once ourselves.
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("info,kube_runtime=error,kube_client::client=off"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // Somebody else's subscriber, as in a test, stays.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}

/// The owner of the state.
struct Operator<'r> {
    triage: Triage,
    thresholds: Thresholds,
    page: Option<LivePage>,
    admission: Option<Admission>,
    aws: Option<aws_questions::AskAws>,
    logs: Option<ReadLogs>,
    pods: Pods,
    access: Access,
    watches: Watches,
    health: &'r Health,
    metrics: &'r Metrics,
    tasks: mpsc::Sender<Task>,
    remedies: Remedies,
    node_conditions: Option<NodeConditions>,
    leads: Leads,
    /// The term that this replica leads in.
    term: Option<u64>,
    clock: Arc<Clock>,
    outages: Outages,
    /// Whether the replica has reported what ended before it first led.
    caught_up: bool,
    /// Whether the replica has begun to lead, and has not sent what the last leader may not have sent about findings.
    takes_over: bool,
}

impl Operator<'_> {
    /// Whole seconds, as Kubernetes keeps them.
    fn now(&self) -> DateTime<Utc> {
        self.clock.now().trunc_subsecs(0)
    }

    /// Changes whenever a verdict or a finding about the configuration changes: neither part ever falls.
    const fn revision(&self) -> u64 {
        self.triage.revision() + self.triage.findings_revision()
    }

    async fn run(mut self, mut changed: mpsc::Receiver<Change>, candidate: &mut Candidate) -> Result<(), Error> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut started = false;
        let mut counted = None;
        let mut alarm = pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            // One that rings in vain is cheaper than one that is set anew for each change: that wakes the thread which
            // waits for events.
            let wake = tokio::time::Instant::now() + self.wait(started);
            if alarm.is_elapsed() || wake + MOMENT < alarm.deadline() {
                alarm.as_mut().reset(wake);
            }
            tokio::select! {
                received = changed.recv_many(&mut batch, BATCH) => if received == 0 { return Err(Error::Died("no watch \
                    is left".to_owned())) },
                Ok(()) = self.leads.changed() => {}
                Some((removal, answer)) = self.remedies.answer() => {
                    let now = self.now();
                    self.remedies.take_answer(&removal, answer, &mut self.triage, now);
                }
                Some(reader) = page::wanted(&mut self.page) => drop(reader.send(started.then(|| self.live_page().into()))),
                () = &mut alarm => {}
                () = self.tasks.closed() => return Err(Error::Died("the publisher".to_owned())),
                () = candidate.died() => return Err(Error::Died("the thread of the Lease".to_owned())),
                error = self.watches.died() => return Err(Error::Died(error.to_string())),
            }
            self.health.turn();
            let now = self.now();
            for change in batch.drain(..) {
                if self.watches.is_over(&change) {
                    continue;
                }
                self.note_change(&change);
                self.triage.take(change, now);
            }
            if !started && self.judges_from().is_some_and(|at| at <= Instant::now()) {
                started = true;
                self.triage.start();
                self.health.readiness(Readiness::judging);
                candidate.stand().map_err(Error::Thread)?;
                tracing::info!("the first lists are complete; diagnosing starts");
                say_never_judged(&self.triage);
            }
            self.follow_the_lease();
            self.give_orders().await?;
            self.check_configuration().await?;
            if let Some(admission) = &mut self.admission
                && started
            {
                admission.show(&self.triage);
            }
            let said = Some(self.revision());
            if counted != said {
                self.metrics.open(self.triage.open());
                self.metrics.config_findings(self.triage.findings());
                if let Some(page) = &self.page {
                    page.say(self.revision());
                }
                counted = said;
            }
            self.remedies.count(&self.triage, now);
            self.metrics.clock(self.clock.ahead());
            self.metrics.karpenter(self.triage.cluster().karpenter().map(|k| k.version.to_string()));
        }
    }

    /// When verdicts can begin. While the time is in doubt, they wait for a while.
    fn judges_from(&self) -> Option<Instant> {
        let listed = self.health.readiness(|readiness| readiness.can_judge_at())?;
        Some(if self.clock.doubt().is_some() { listed + CLOCK_WITHIN } else { listed })
    }

    fn follow_the_lease(&mut self) {
        let term = self.leads.borrow_and_update().map(|leadership| leadership.term);
        if term != self.term {
            self.term = term;
            self.remedies.follow(term);
            match term {
                Some(_) => {
                    self.triage.lead();
                    self.triage.announce_again(self.now());
                    self.takes_over = true;
                }
                None => self.triage.follow(),
            }
            self.metrics.leads(term.is_some());
        }
    }

    async fn give_orders(&mut self) -> Result<(), Error> {
        let now = self.now();
        let mut orders = self.triage.look_telling(now, || self.health.turn());
        if self.term.is_some() && !std::mem::replace(&mut self.caught_up, true) {
            say_ended(&orders);
        }
        // Who does not lead has no say.
        if let Some(term) = self.term {
            let not_current = self.health.readiness(|readiness| readiness.not_current());
            let doubts = Doubts { not_current, clock: self.clock.doubt() };
            self.remedies.look(&mut self.triage, &doubts, now);
            orders.extend(self.triage.look(now));
            if let Some(node_conditions) = &mut self.node_conditions {
                node_conditions.look(&self.triage, term, now);
            }
            if let Some(aws) = &mut self.aws {
                aws.look(&self.triage, self.watches.tasks(), now);
            }
            if let Some(logs) = &mut self.logs {
                logs.look(&self.triage, now);
            }
        }
        for order in orders {
            let work = match order {
                Order::ListPods(node) => {
                    self.pods.ask(node);
                    continue;
                }
                Order::ReviewAccess(identity) => {
                    self.access.ask(identity);
                    continue;
                }
                Order::Write(write) => {
                    say(&write, self.metrics, now);
                    Work::Write(write)
                }
                Order::Delete(delete) => Work::Delete(delete),
                Order::Summarize(summary) => Work::Summarize(summary),
                Order::Announce(diagnosis) => Work::Announce(diagnosis),
            };
            // Only a triage that leads orders writes.
            let Some(term) = self.term else { continue };
            if self.tasks.send(Task { term, work }).await.is_err() {
                return Err(Error::Died("the publisher".to_owned()));
            }
        }
        Ok(())
    }

    /// Lints the configuration if it changed. The leader says on its objects which mistakes came and which went.
    async fn check_configuration(&mut self) -> Result<(), Error> {
        let mut notices = self.triage.check_configuration(self.now(), &|| self.health.turn());
        let Some(term) = self.term else { return Ok(()) };
        if std::mem::take(&mut self.takes_over) {
            notices.retain(|notice| !notice.is_found);
            notices.extend(self.triage.all_findings());
        }
        for notice in notices {
            say_finding(&notice);
            if self.tasks.send(Task { term, work: Work::Notice(Box::new(notice)) }).await.is_err() {
                return Err(Error::Died("the publisher".to_owned()));
            }
        }
        Ok(())
    }

    /// The page that `diagnose -o html` would print for the present objects.
    fn live_page(&self) -> String {
        let survey = Survey::of(Judging::new(self.triage.cluster(), self.now(), &self.thresholds), JudgedBy::Present);
        let failed = |(name, state): (&str, &SourceState)| match state {
            SourceState::Failed(ReadFailure::NotInstalled) | SourceState::Pending | SourceState::Read => None,
            SourceState::Failed(failure) => Some((name.to_owned(), failure.clone())),
        };
        let failures: Vec<_> = self.health.readiness(|readiness| readiness.states().filter_map(failed).collect());
        let notes = failure::once_a_reason(&failures);
        let findings: Vec<_> = self.triage.findings().collect();
        let background = Background { cluster: self.triage.cluster(), notes: &notes };
        report::live_page(&survey, &background, &findings, self.revision())
    }

    /// Time until the loop has something to do by itself.
    fn wait(&self, started: bool) -> Duration {
        let next = if started {
            let next = [self.triage.next_look(), self.triage.next_check()].into_iter().flatten().min();
            next.map(|at| (at - self.clock.now()).to_std().unwrap_or_default())
        } else {
            let wait = self.judges_from().map(|at| at.saturating_duration_since(Instant::now()));
            // The answer that settles the time does not wake the loop.
            wait.map(|wait| if self.clock.doubt().is_some() { wait.min(ASK_THE_TIME) } else { wait })
        };
        next.unwrap_or(TURN).min(TURN)
    }

    /// Applies a change to readiness, metrics, the log and the watched node classes.
    fn note_change(&mut self, change: &Change) {
        match change {
            Change::Source { what, name, state } => {
                match (self.outages.note(name, state), state, what) {
                    (Outage::Begins(why), ..) => {
                        tracing::warn!(
                            input = name,
                            why,
                            "requests to the API server fail; nodewhy uses the last known state"
                        );
                    }
                    (Outage::Ends(_), ..) => tracing::info!("requests to the API server succeed again"),
                    (Outage::GoesOn, ..) | (Outage::None, SourceState::Pending, _) => {}
                    (Outage::None, SourceState::Failed(why), Watched::Diagnoses) => {
                        tracing::warn!(%why, "cannot read NodeDiagnoses; is the CustomResourceDefinition installed?");
                    }
                    (Outage::None, SourceState::Failed(why), _) => {
                        tracing::warn!(input = name, %why, "an input cannot be read; nodewhy continues without it");
                    }
                    (Outage::None, SourceState::Read, _) => tracing::info!(input = name, "nodewhy can read this input"),
                }
                self.note(*what, name.clone(), state.clone());
                if let Watched::Input(input) = *what {
                    self.triage.mark(input, self.health.readiness(|r| r.availability(input)));
                }
            }
            Change::Unreadable { what: _, name, object, error } => {
                self.metrics.unreadable(name);
                tracing::warn!(
                    input = name,
                    object,
                    error,
                    "cannot read all of an object; nodewhy uses the readable fields, or else the last readable state"
                );
            }
            Change::Applied(object) => {
                if let Object::NodePool(pool) = &**object {
                    self.metrics.pool(pool.name());
                    let class = &pool.spec.template.spec.node_class_ref;
                    let turn = self.watches.pool_names(pool.name(), &class.group, &class.kind);
                    self.follow_node_classes(turn);
                }
            }
            Change::Pods { node, pods: Err(why) } => tracing::warn!(node, %why, "the pods of a Node cannot be read"),
            Change::Access { answer: Err(why), .. } => {
                // Said once: it is asked again and again.
                if self.triage.cluster().missing(Input::AccessReviews) != Some(&why.to_string()) {
                    tracing::warn!(%why, "cannot check the permissions of kubelets; nodewhy continues without this \
                                          check");
                }
            }
            Change::Removed { input: Input::NodePools, name, .. } => {
                self.metrics.pool_gone(name);
                let turn = self.watches.pool_gone(name);
                self.follow_node_classes(turn);
            }
            Change::Access { .. }
            | Change::Pods { .. }
            | Change::Removed { .. }
            | Change::Diagnosis(_)
            | Change::DiagnosisGone(_)
            | Change::DiagnosesListed(_)
            | Change::ApiServer(_) => {}
        }
    }

    /// Node classes that are watched from now on, or not any more.
    fn follow_node_classes(&mut self, (begun, ended): (Vec<String>, Vec<Unwatched>)) {
        for Unwatched { group, kind, source } in ended {
            self.outages.note(&source, &SourceState::Read);
            self.health.readiness(|readiness| {
                readiness.forget(Input::NodeClasses.into(), &source);
                self.metrics.watches(readiness.states());
            });
            self.metrics.source_gone(&source);
            self.triage.forget_classes(&group, &kind);
            self.triage.mark(Input::NodeClasses, self.health.readiness(|r| r.availability(Input::NodeClasses)));
        }
        for name in begun {
            self.note(Input::NodeClasses.into(), name, SourceState::Pending);
        }
    }

    fn note(&self, what: Watched, name: String, state: SourceState) {
        self.health.readiness(|readiness| {
            readiness.note(what, name, state, Instant::now());
            self.metrics.watches(readiness.states());
        });
    }
}

/// Reports diagnoses that ended while no replica wrote. The first orders of a new leader are about earlier events.
fn say_ended(orders: &[Order]) {
    let ended = orders.iter().filter_map(|order| match order {
        Order::Write(write) if write.ends.is_some() => write.diagnosis.metadata.name.as_deref(),
        _ => None,
    });
    let ended: Vec<_> = ended.collect();
    if !ended.is_empty() {
        tracing::info!(
            machines = ended.len(),
            names = some_of(&ended),
            "ended while no replica of nodewhy was writing"
        );
    }
}

/// Reports NodeClaims that came and went before the first verdict, as far as Events show them.
fn say_never_judged(triage: &Triage) {
    let never: Vec<_> = triage.never_judged().collect();
    if !never.is_empty() {
        tracing::warn!(
            machines = never.len(),
            names = some_of(&never),
            "NodeClaims came and went before nodewhy started; their cause is unknown"
        );
    }
}

fn some_of(names: &[&str]) -> String {
    const NAMED: usize = 5;
    let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    if names.len() > NAMED { format!("{named} and {} more", names.len() - NAMED) } else { named }
}

fn say_finding(notice: &FindingNotice) {
    let (kind, name, finding) = (&*notice.regarding.kind, &*notice.regarding.name, &*notice.cause);
    if notice.is_found {
        tracing::warn!(kind, name, finding, note = &*notice.note, "the configuration will keep new nodes from joining");
    } else {
        tracing::info!(kind, name, finding, "a mistake in the configuration is fixed or its object is gone");
    }
}

fn say(write: &Write, metrics: &Metrics, now: DateTime<Utc>) {
    let Some(status) = &write.diagnosis.status else { return };
    let name = write.diagnosis.metadata.name.as_deref().unwrap_or_default();
    if write.announces {
        metrics.diagnosed(&write.diagnosis, write.first, now);
        tracing::info!(name, cause = &*status.cause, stage = ?status.stage, confidence = ?status.confidence, summary = &*status.summary, "diagnosed");
    }
    if let Some(outcome) = write.ends {
        metrics.ended(outcome);
        tracing::info!(name, cause = &*status.cause, ?outcome, "ended");
    }
    if let (Some(ran), Some(pool)) = (write.in_vain, &write.diagnosis.spec.node_pool) {
        metrics.launched_in_vain(&pool.name, ran);
    }
}
