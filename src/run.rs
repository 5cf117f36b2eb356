//! `nodewhy run`: the operator. One task owns the world and decides; watches feed it, the publisher writes what it orders.

use crate::cluster::{self, Cluster};
use crate::gate::Thresholds;
use crate::input::{Input, Object};
use crate::metrics::Metrics;
use crate::publish;
use crate::readiness::Readiness;
use crate::serve::{self, Health};
use crate::triage::{Order, Triage, Write};
use crate::watch::{Change, Pods, State, Watches};
use chrono::{DateTime, SubsecRound, Utc};
use kube::Client;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Changes that may wait before the watches do.
const CHANGES: usize = 1024;
/// Changes that are taken in before anything is judged.
const BATCH: usize = 256;
/// The loop comes by at least so often.
const TURN: Duration = Duration::from_secs(10);
/// What is still to be written at the end has so long.
const LAST_WRITES: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(5);

/// The options of `nodewhy run`.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    pub cluster: Cluster,
    /// Address of /metrics, /livez and /readyz
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8080")]
    pub listen: SocketAddr,
    /// Log lines for people or for machines
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
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
    Cluster(#[from] cluster::Error),
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("cannot receive signals: {0}")]
    Signals(std::io::Error),
    #[error("a part of the operator died: {0}")]
    Died(String),
}

/// Runs until SIGTERM or SIGINT.
pub async fn run(options: Options, thresholds: Thresholds) -> Result<(), Error> {
    log(options.log_format);
    let mut terminate = signal(SignalKind::terminate()).map_err(Error::Signals)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Error::Signals)?;
    let client = options.cluster.client().await?;
    let listener = serve::bind(options.listen).await.map_err(|error| Error::Listen { address: options.listen, error })?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), listen = %options.listen, "nodewhy starts");

    let metrics = Arc::new(Metrics::default());
    let health = Arc::new(Health::new(Readiness::new(Watches::sources())));
    let (stop, mut stopped) = watch::channel(());
    let until_stopped = async move { drop(stopped.changed().await) };
    let server = tokio::spawn(serve::serve(listener, Arc::clone(&health), Arc::clone(&metrics), until_stopped));

    let (orders, publisher) = publish::start(client.clone(), Arc::clone(&metrics));
    let ended = tokio::select! {
        ended = operate(client, thresholds, &health, &metrics, orders) => ended,
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
    };
    // operate() is gone, and the sender of orders with it: the publisher ends when it has written what it holds.
    tracing::info!("nodewhy ends");
    if timeout(LAST_WRITES, publisher).await.is_err() {
        tracing::warn!("not everything could be written in time; the next start will write it");
    }
    drop(stop);
    finish(server).await;
    ended
}

async fn finish(server: JoinHandle<std::io::Result<()>>) {
    if let Ok(Ok(Err(error))) = timeout(Duration::from_secs(1), server).await {
        tracing::warn!(%error, "the server ended badly");
    }
}

fn log(format: LogFormat) {
    use tracing_subscriber::EnvFilter;
    // kube's watcher logs each refused list; we say it once ourselves.
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,kube_runtime=error"));
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    // Somebody else's subscriber, as in a test, stays.
    let _ = match format {
        LogFormat::Text => lines.try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}

/// The owner of the world.
async fn operate(
    client: Client,
    thresholds: Thresholds,
    health: &Health,
    metrics: &Metrics,
    orders: mpsc::Sender<Write>,
) -> Result<(), Error> {
    let (changes, mut changed) = mpsc::channel(CHANGES);
    let mut triage = Triage::new(thresholds, diagnoses_in(&client, health).await);
    let pods = Pods::start(client.clone(), changes.clone());
    let mut watches = Watches::start(client, changes);
    let mut batch = Vec::with_capacity(BATCH);
    let mut started = false;
    loop {
        let wait = wait(&triage, health, started);
        tokio::select! {
            received = changed.recv_many(&mut batch, BATCH) => if received == 0 { return Err(Error::Died("no watch is left".to_owned())) },
            () = tokio::time::sleep(wait) => {}
            error = watches.died() => return Err(Error::Died(error.to_string())),
        }
        health.turn();
        for change in batch.drain(..) {
            hear(&change, &mut triage, &mut watches, health, metrics);
            triage.take(change, now());
        }
        if !started && health.readiness(|r| r.can_judge_at()).is_some_and(|at| at <= Instant::now()) {
            started = true;
            triage.start();
            health.readiness(Readiness::judging);
            tracing::info!("the first lists are complete, verdicts begin");
        }
        for order in triage.look(now()) {
            match order {
                Order::ListPods(node) => pods.ask(node),
                Order::Write(write) => {
                    say(&write, metrics);
                    if orders.send(*write).await.is_err() {
                        return Err(Error::Died("the publisher".to_owned()));
                    }
                }
            }
        }
        metrics.open(triage.open());
        metrics.karpenter(triage.world().karpenter().map(|k| k.version.to_string()));
    }
}

/// The diagnoses of an earlier run. Without them a restart would write everything again, so they are waited for.
async fn diagnoses_in(client: &Client, health: &Health) -> Vec<crate::api::NodeDiagnosis> {
    loop {
        match publish::list(client).await {
            Ok(diagnoses) => return diagnoses,
            Err(error) => tracing::warn!(%error, "cannot list NodeDiagnoses; is the CustomResourceDefinition installed?"),
        }
        health.turn();
        tokio::time::sleep(RETRY).await;
    }
}

/// Time until the loop has something to do by itself.
fn wait(triage: &Triage, health: &Health, started: bool) -> Duration {
    let next = if started {
        triage.next_look().map(|at| (at - Utc::now()).to_std().unwrap_or_default())
    } else {
        health.readiness(|r| r.can_judge_at()).map(|at| at.saturating_duration_since(Instant::now()))
    };
    next.unwrap_or(TURN).min(TURN)
}

/// Whole seconds, as Kubernetes keeps them.
fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(0)
}

/// What a change means beyond the world: readiness, metrics, log, another node class to watch.
fn hear(change: &Change, triage: &mut Triage, watches: &mut Watches, health: &Health, metrics: &Metrics) {
    match change {
        Change::Source { input, name, state } => {
            match state {
                State::Failed(why) => tracing::warn!(input = name, %why, "an input cannot be read; the rest works on"),
                State::Read => tracing::info!(input = name, "an input is read"),
                State::Pending => {}
            }
            note(*input, name.clone(), state.clone(), health, metrics);
            triage.mark(*input, health.readiness(|r| r.availability(*input)));
        }
        Change::Unreadable { input, object, error } => {
            metrics.unreadable(input.name());
            tracing::warn!(input = input.name(), object, error, "an object cannot be read; its last readable state stays");
        }
        Change::Applied(object) => {
            if let Object::NodePool(pool) = &**object {
                let class = &pool.spec.template.spec.node_class_ref;
                if let Some(name) = watches.node_class(&class.group, &class.kind) {
                    note(Input::NodeClasses, name, State::Pending, health, metrics);
                }
            }
        }
        Change::Pods { node, pods: Err(why) } => tracing::warn!(node, %why, "the pods of a Node cannot be read"),
        Change::Pods { .. } | Change::Removed { .. } => {}
    }
}

fn note(input: Input, name: String, state: State, health: &Health, metrics: &Metrics) {
    health.readiness(|readiness| {
        readiness.note(input, name, state, Instant::now());
        metrics.watches(readiness.up());
    });
}

fn say(write: &Write, metrics: &Metrics) {
    let Some(status) = &write.diagnosis.status else { return };
    let name = write.diagnosis.metadata.name.as_deref().unwrap_or_default();
    if write.announces {
        metrics.diagnosed(&write.diagnosis);
        tracing::info!(name, cause = status.cause, stage = ?status.stage, confidence = ?status.confidence, summary = status.summary, "diagnosed");
    }
    if let Some(outcome) = write.ends {
        metrics.ended(outcome);
        tracing::info!(name, cause = status.cause, ?outcome, "ended");
    }
}
