//! What Prometheus sees. Gauges are made from the live state when they are scraped, so no series outlives its reason.
//!
//! Labels are bounded: causes, gates, outcomes and sources are lists in this code, NodePools and Karpenter's version are as many
//! as the cluster has.

use crate::api::{NodeDiagnosis, Outcome};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// All metrics of the operator.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    live: Arc<Live>,
    diagnosed: Family<Cause, Counter>,
    outcomes: Family<Ended, Counter>,
    writes: Family<Written, Counter>,
    queue: Gauge,
    unreadable: Family<Read, Counter>,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteResult {
    Ok,
    Error,
    Timeout,
    Refused,
}

impl EncodeLabelValue for WriteResult {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> Result<(), std::fmt::Error> {
        encoder.write_str(match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Diagnosis {
    cause: String,
    stage: String,
    confidence: String,
    nodepool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Cause {
    cause: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    outcome: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    result: WriteResult,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Read {
    input: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: String,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("nodewhy");
        let (diagnosed, outcomes, writes, queue, unreadable) =
            (Family::default(), Family::default(), Family::default(), Gauge::default(), Family::default());
        registry.register("diagnosed", "Causes named, each machine once per cause", Family::clone(&diagnosed));
        registry.register("outcomes", "Diagnosed machines by how they ended", Family::clone(&outcomes));
        registry.register("writes", "Writes of a NodeDiagnosis by result", Family::clone(&writes));
        registry.register("queue", "NodeDiagnoses that wait to be written", Gauge::clone(&queue));
        registry.register("unreadable_objects", "Objects of other kinds that could not be read", Family::clone(&unreadable));
        registry.register("build", "The version of nodewhy", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let live = Arc::new(Live::default());
        registry.register_collector(Box::new(Arc::clone(&live)));
        Self { registry, live, diagnosed, outcomes, writes, queue, unreadable }
    }
}

impl Metrics {
    /// The text that Prometheus scrapes.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }

    pub fn diagnosed(&self, diagnosis: &NodeDiagnosis) {
        if let Some(status) = &diagnosis.status {
            self.diagnosed.get_or_create(&Cause { cause: status.cause.clone() }).inc();
        }
    }

    pub fn ended(&self, outcome: Outcome) {
        self.outcomes.get_or_create(&Ended { outcome: format!("{outcome:?}") }).inc();
    }

    pub fn wrote(&self, result: WriteResult) {
        self.writes.get_or_create(&Written { result }).inc();
    }

    pub fn queue(&self, waiting: usize) {
        self.queue.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    pub fn unreadable(&self, input: &str) {
        self.unreadable.get_or_create(&Read { input: input.to_owned() }).inc();
    }

    /// The diagnoses of machines that are stuck now.
    pub fn open<'a>(&self, diagnoses: impl Iterator<Item = &'a NodeDiagnosis>) {
        let mut counts = BTreeMap::new();
        for diagnosis in diagnoses {
            let Some(status) = &diagnosis.status else { continue };
            let labels = Diagnosis {
                cause: status.cause.clone(),
                stage: format!("{:?}", status.stage),
                confidence: format!("{:?}", status.confidence),
                nodepool: diagnosis.spec.node_pool.as_ref().map(|p| p.name.clone()).unwrap_or_default(),
            };
            *counts.entry(labels).or_insert(0) += 1;
        }
        self.live.with(|seen| seen.diagnoses = counts);
    }

    /// Which sources are read.
    pub fn watches<'a>(&self, up: impl Iterator<Item = (&'a str, bool)>) {
        let up = up.map(|(name, up)| (Read { input: name.to_owned() }, i64::from(up))).collect();
        self.live.with(|seen| seen.watches = up);
    }

    pub fn karpenter(&self, version: Option<String>) {
        self.live.with(|seen| seen.karpenter = version);
    }
}

/// The live state, as of the last look.
#[derive(Debug, Default)]
struct Live(Mutex<Seen>);

#[derive(Debug, Default, Clone)]
struct Seen {
    diagnoses: BTreeMap<Diagnosis, i64>,
    watches: BTreeMap<Read, i64>,
    karpenter: Option<String>,
}

impl Live {
    fn with<T>(&self, f: impl FnOnce(&mut Seen) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Collector for Live {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let seen = self.with(|seen| seen.clone());
        let mut family = encoder.encode_descriptor("diagnoses", "Machines that are stuck now, by verdict.", None, MetricType::Gauge)?;
        for (labels, count) in &seen.diagnoses {
            ConstGauge::new(*count).encode(family.encode_family(labels)?)?;
        }
        let mut family =
            encoder.encode_descriptor("watch_up", "1 where the input is read, 0 where it cannot be.", None, MetricType::Gauge)?;
        for (labels, up) in &seen.watches {
            ConstGauge::new(*up).encode(family.encode_family(labels)?)?;
        }
        if let Some(version) = seen.karpenter {
            let metric = encoder.encode_descriptor("karpenter", "The version of Karpenter.", None, MetricType::Info)?;
            Info::new(Version { version }).encode(metric)?;
        }
        Ok(())
    }
}
