//! What Prometheus sees. Gauges are made from the live state when they are scraped, so no series outlives its reason.
//!
//! Labels are bounded: causes, stages, outcomes and sources are lists in this code; NodePools are as many as the
//! cluster has, and only those with stuck machines are there. Objects of the configuration have series only while they
//! have mistakes, and not more than `CONFIG_FINDINGS`. No metric has the name of a machine. docs/metrics.md says how
//! many series that makes.

mod plain;

use crate::operator::sources::sources;
use chrono::{DateTime, TimeDelta, Utc};
use engine::api::{NodeDiagnosis, Outcome};
use engine::lint::{Level, LintFinding};
use engine::remediation;
use engine::triage::change::{ReadFailure, SourceState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry, Unit};
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
    time_to_diagnosis: Histogram,
    relists: Family<Read, Counter>,
    last_events: Family<Read, Gauge>,
    leader: Gauge,
    clock: Gauge,
    remediations: Family<Remediated, Counter>,
    in_vain: Family<Pool, Counter>,
    ran_in_vain: Family<Pool, Counter>,
}

/// From the begin of the wait to the first verdict: the thresholds are 2 to 10 minutes, Karpenter's timeout is 15.
const SECONDS_TO_DIAGNOSIS: [f64; 10] = [10.0, 30.0, 60.0, 120.0, 180.0, 300.0, 450.0, 600.0, 900.0, 1800.0];

/// Maximum series about the configuration. Findings that keep nodes from joining come first.
const CONFIG_FINDINGS: usize = 500;

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WriteResult {
    Ok,
    Error,
    Timeout,
    Refused,
}

impl WriteResult {
    const ALL: [Self; 4] = [Self::Ok, Self::Error, Self::Timeout, Self::Refused];
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

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Pool {
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

impl Ended {
    fn by(outcome: Outcome) -> Self {
        Self { outcome: format!("{outcome:?}") }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Remediated {
    result: &'static str,
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Kept {
    reason: String,
}

/// The level comes first, so that errors are sorted before warnings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct ConfigFinding {
    level: &'static str,
    kind: String,
    name: String,
    finding: String,
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

/// Each metric gets its name where it is made.
struct Names<'r>(&'r mut Registry);

impl Names<'_> {
    fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    fn add_in_seconds<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, Unit::Seconds, metric.clone());
        metric
    }
}

impl Default for Metrics {
    /// Prometheus reads the metrics in this order.
    fn default() -> Self {
        let mut registry = Registry::with_prefix("nodewhy");
        let live = Arc::new(Live::default());
        let mut names = Names(&mut registry);
        let mut metrics = Self {
            diagnosed: names.add("diagnosed", "Verdicts, counted once per stuck node and cause"),
            outcomes: names.add("outcomes", "Ended NodeDiagnoses, by outcome"),
            writes: names.add("writes", "Writes of NodeDiagnoses, by result"),
            queue: names.add("queue", "NodeDiagnoses that are not written yet"),
            unreadable: names.add("unreadable_objects", "Objects that nodewhy could not read, by input"),
            time_to_diagnosis: names.add_in_seconds(
                "time_to_diagnosis",
                "Time from the start of a node's wait to its diagnosis",
                Histogram::new(SECONDS_TO_DIAGNOSIS),
            ),
            relists: names.add("watch_relists", "Full lists of an input, not counting the first"),
            last_events: names.add_in_seconds(
                "watch_last_event_timestamp",
                "Time of the last object that the watch of an input received",
                Family::default(),
            ),
            leader: names.add("leader", "1 if this replica writes, 0 if it is on standby"),
            clock: names.add_in_seconds(
                "clock_skew",
                "How far the API server's clock is ahead of the local clock (0 if within 5 seconds)",
                Gauge::default(),
            ),
            remediations: names.add(
                "remediations",
                "Cloud-provider taints that nodewhy removed or kept, or that were re-added, by reason",
            ),
            in_vain: names.add("launches_in_vain", "NodeClaims deleted before their node joined"),
            ran_in_vain: names.add_in_seconds(
                "instances_in_vain",
                "Running time of instances that never joined",
                Family::default(),
            ),
            live: Arc::clone(&live),
            registry,
        };
        metrics.registry.register(
            "build",
            "The version of nodewhy",
            Info::new([("version", env!("CARGO_PKG_VERSION"))]),
        );
        metrics.registry.register_collector(Box::new(live));
        metrics.begin_at_zero();
        metrics
    }
}

impl Metrics {
    /// A counter that appears with its first event has no increase that Prometheus could see.
    fn begin_at_zero(&self) {
        for outcome in [Outcome::Recovered, Outcome::Terminated, Outcome::Deleted] {
            drop(self.outcomes.get_or_create(&Ended::by(outcome)));
        }
        for result in WriteResult::ALL {
            drop(self.writes.get_or_create(&Written { result }));
        }
        for (result, reason) in [
            (remediation::RemovalOutcome::Removed, remediation::REMOVED),
            (remediation::RemovalOutcome::PutBack, remediation::PUT_BACK),
        ] {
            drop(self.remediations.get_or_create(&Remediated { result: result.label(), reason: reason.to_owned() }));
        }
        for (_, input) in sources() {
            drop(self.unreadable.get_or_create(&Read { input }));
        }
    }

    /// The text that Prometheus scrapes.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut out = String::new();
        text::encode(&mut out, &self.registry)?;
        Ok(out)
    }

    /// The same in the older text format, for those who do not ask for OpenMetrics.
    pub fn encode_plain(&self) -> Result<String, std::fmt::Error> {
        Ok(plain::from_openmetrics(&self.encode()?))
    }

    /// A cause was named; `first` where the machine had no diagnosis before.
    #[allow(clippy::cast_precision_loss, reason = "seconds of a wait")]
    pub fn diagnosed(&self, diagnosis: &NodeDiagnosis, first: bool, now: DateTime<Utc>) {
        if let Some(status) = &diagnosis.status {
            self.diagnosed.get_or_create(&Cause { cause: status.cause.to_string() }).inc();
            if first {
                self.time_to_diagnosis.observe((now - status.first_observed_at).num_seconds().max(0) as f64);
            }
        }
    }

    /// Adds the counters of failed launches for a NodePool, starting at 0.
    pub fn pool(&self, name: &str) {
        let pool = Pool { nodepool: name.to_owned() };
        drop(self.in_vain.get_or_create(&pool));
        drop(self.ran_in_vain.get_or_create(&pool));
    }

    pub fn pool_gone(&self, name: &str) {
        let pool = Pool { nodepool: name.to_owned() };
        self.in_vain.remove(&pool);
        self.ran_in_vain.remove(&pool);
    }

    /// Counts a machine of the NodePool that was deleted before it joined, and the time that its instance ran.
    pub fn launched_in_vain(&self, pool: &str, ran: TimeDelta) {
        let pool = Pool { nodepool: pool.to_owned() };
        self.in_vain.get_or_create(&pool).inc();
        self.ran_in_vain.get_or_create(&pool).inc_by(ran.num_seconds().try_into().unwrap_or_default());
    }

    pub fn watch_relisted(&self, source: &str) {
        self.relists.get_or_create(&Read { input: source.to_owned() }).inc();
    }

    /// The gauge of the Unix time at which the watch of a source last received an object.
    pub fn last_event(&self, source: &str) -> Gauge {
        self.last_events.get_or_create_owned(&Read { input: source.to_owned() })
    }

    /// A source is not watched any more.
    pub fn source_gone(&self, source: &str) {
        let read = Read { input: source.to_owned() };
        self.relists.remove(&read);
        self.last_events.remove(&read);
        self.unreadable.remove(&read);
    }

    pub fn leads(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    pub fn clock(&self, ahead: i64) {
        self.clock.set(ahead);
    }

    pub fn ended(&self, outcome: Outcome) {
        self.outcomes.get_or_create(&Ended::by(outcome)).inc();
    }

    pub fn wrote(&self, result: WriteResult) {
        self.writes.get_or_create(&Written { result }).inc();
    }

    pub fn queue(&self, waiting: usize) {
        self.queue.set(i64::try_from(waiting).unwrap_or(i64::MAX));
    }

    pub fn remediated(&self, result: remediation::RemovalOutcome, reason: &str) {
        self.remediations.get_or_create(&Remediated { result: result.label(), reason: reason.to_owned() }).inc();
    }

    pub fn unreadable(&self, input: &str) {
        self.unreadable.get_or_create(&Read { input: input.to_owned() }).inc();
    }

    /// The diagnoses of machines that are stuck now.
    pub fn open<'a>(&self, diagnoses: impl Iterator<Item = &'a NodeDiagnosis>) {
        let mut counts = BTreeMap::new();
        let mut soonest: BTreeMap<Pool, i64> = BTreeMap::new();
        for diagnosis in diagnoses {
            let Some(status) = &diagnosis.status else { continue };
            let labels = Diagnosis {
                cause: status.cause.to_string(),
                stage: format!("{:?}", status.stage),
                confidence: format!("{:?}", status.confidence),
                nodepool: diagnosis.spec.node_pool.as_ref().map(|p| p.name.clone()).unwrap_or_default(),
            };
            if let Some(at) = status.terminates_at {
                let soonest = soonest.entry(Pool { nodepool: labels.nodepool.clone() }).or_insert(i64::MAX);
                *soonest = at.timestamp().min(*soonest);
            }
            *counts.entry(labels).or_insert(0) += 1;
        }
        self.live.with(|seen| (seen.diagnoses, seen.soonest) = (counts, soonest));
    }

    /// How far the sources are.
    pub fn watches<'a>(&self, states: impl Iterator<Item = (&'a str, &'a SourceState)>) {
        let mut up = BTreeMap::new();
        let mut permitted = BTreeMap::new();
        for (name, state) in states {
            let read = Read { input: name.to_owned() };
            permitted
                .insert(read.clone(), i64::from(!matches!(state, SourceState::Failed(ReadFailure::NotPermitted(_)))));
            up.insert(read, i64::from(*state == SourceState::Read));
        }
        self.live.with(|seen| (seen.watches, seen.permitted) = (up, permitted));
    }

    /// The Nodes that keep a taint whose removal is asked for, by reason.
    pub fn taints_kept(&self, by_reason: BTreeMap<String, i64>) {
        let kept = by_reason.into_iter().map(|(reason, nodes)| (Kept { reason }, nodes)).collect();
        self.live.with(|seen| seen.taints_kept = kept);
    }

    /// The mistakes of the configuration.
    pub fn config_findings<'a>(&self, findings: impl Iterator<Item = &'a LintFinding>) {
        let mut counts = BTreeMap::new();
        for finding in findings {
            let labels = ConfigFinding {
                level: match finding.level {
                    Level::Error => "error",
                    Level::Warning => "warning",
                },
                kind: finding.blame.kind.clone(),
                name: finding.blame.name.clone(),
                finding: finding.cause.clone(),
            };
            *counts.entry(labels).or_insert(0) += 1;
        }
        let shown = counts.into_iter().take(CONFIG_FINDINGS).collect();
        self.live.with(|seen| seen.config_findings = shown);
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
    /// Unix time, by NodePool.
    soonest: BTreeMap<Pool, i64>,
    watches: BTreeMap<Read, i64>,
    permitted: BTreeMap<Read, i64>,
    taints_kept: BTreeMap<Kept, i64>,
    config_findings: BTreeMap<ConfigFinding, i64>,
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
        gauges(&mut encoder, "diagnoses", "Nodes that are stuck now, by verdict.", None, &seen.diagnoses)?;
        let help = "Time at which Karpenter deletes the first of the stuck nodes.";
        gauges(&mut encoder, "soonest_termination_timestamp", help, Some(&Unit::Seconds), &seen.soonest)?;
        gauges(&mut encoder, "watch_up", "1 if nodewhy reads the input, 0 if it cannot.", None, &seen.watches)?;
        gauges(&mut encoder, "watch_permitted", "0 if RBAC does not permit reading the input.", None, &seen.permitted)?;
        let help = "Nodes that keep the cloud-provider taint although its removal is on, by reason.";
        gauges(&mut encoder, "taints_kept", help, None, &seen.taints_kept)?;
        let help = "Mistakes of an object that will keep new nodes from joining (error) or may do so (warning).";
        gauges(&mut encoder, "config_findings", help, None, &seen.config_findings)?;
        if let Some(version) = seen.karpenter {
            let metric = encoder.encode_descriptor("karpenter", "The version of Karpenter.", None, MetricType::Info)?;
            Info::new(Version { version }).encode(metric)?;
        }
        Ok(())
    }
}

fn gauges<L: EncodeLabelSet>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: &BTreeMap<L, i64>,
) -> Result<(), std::fmt::Error> {
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in values {
        ConstGauge::new(*value).encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::api::{Blame, Confidence, Named, NodeDiagnosisSpec, NodeDiagnosisStatus, ObjectRef, Stage, Text};
    use engine::rules;

    const NOW: &str = "2026-01-15T12:00:00Z";

    fn diagnosis(cause: &str, pool: &str, machine: usize) -> NodeDiagnosis {
        let name = format!("{pool}-{machine}");
        let subject = ObjectRef {
            api_version: "karpenter.sh/v1".into(),
            kind: "NodeClaim".into(),
            name: name.clone(),
            uid: name.clone(),
        };
        let node_pool = Some(Named { name: pool.to_owned() });
        let spec = NodeDiagnosisSpec { subject, node_claim: None, node: None, node_pool, node_class: None };
        let mut diagnosis = NodeDiagnosis::new(&name, spec);
        diagnosis.status = Some(NodeDiagnosisStatus {
            stage: Stage::Register,
            cause: cause.to_owned().into(),
            confidence: Confidence::Likely,
            summary: Text::default(),
            blame: None,
            evidence: Vec::new(),
            chain: Vec::new(),
            ruled_out: Vec::new(),
            unknowns: Vec::new(),
            alternatives: Vec::new(),
            suspects: Vec::new(),
            fix: None,
            first_observed_at: NOW.parse().unwrap(),
            terminates_at: NOW.parse().ok(),
            ended_at: None,
            outcome: None,
            machines: None,
            earlier: Vec::new(),
            recurrences: 0,
            conditions: Vec::new(),
        });
        diagnosis
    }

    /// All that ever happened to a large and unlucky cluster.
    fn busy() -> Metrics {
        let metrics = Metrics::default();
        let pools = ["general", "gpu", "spot"];
        let causes = || rules::ALL.iter().map(|rule| rule.cause);
        let open: Vec<_> = causes()
            .flat_map(|cause| pools.iter().flat_map(move |pool| (0..100).map(move |n| diagnosis(cause, pool, n))))
            .collect();
        for diagnosis in &open {
            metrics.diagnosed(diagnosis, true, NOW.parse().unwrap());
        }
        for outcome in [Outcome::Recovered, Outcome::Terminated, Outcome::Deleted] {
            metrics.ended(outcome);
        }
        for result in WriteResult::ALL {
            metrics.wrote(result);
        }
        for (_, name) in sources() {
            metrics.unreadable(&name);
            metrics.watch_relisted(&name);
            metrics.last_event(&name).set(1);
        }
        let reasons = || remediation::guard::ALL.iter().map(|guard| guard.reason);
        for reason in reasons() {
            metrics.remediated(remediation::RemovalOutcome::Refused, reason);
        }
        metrics.taints_kept(reasons().map(|reason| (reason.to_owned(), 1)).collect());
        let sources: Vec<_> = sources().map(|(_, name)| name).collect();
        metrics.watches(sources.iter().map(|name| (name.as_str(), &SourceState::Read)));
        metrics.karpenter(Some("1.14.1".to_owned()));
        for pool in pools {
            metrics.pool(pool);
        }
        metrics.open(open.iter());
        metrics
    }

    fn series(metrics: &Metrics) -> (usize, usize) {
        let text = metrics.encode_plain().unwrap();
        let (by_pool, others): (Vec<_>, Vec<_>) =
            text.lines().filter(|line| !line.starts_with('#')).partition(|line| line.contains("nodepool="));
        (by_pool.len(), others.len())
    }

    #[test]
    fn the_number_of_series_is_what_the_docs_say_and_no_machine_has_one() {
        let metrics = busy();
        assert!(!metrics.encode().unwrap().contains("general-1"));
        let (by_pool, others) = series(&metrics);
        assert_eq!(by_pool, 3 * rules::ALL.len() + 3 + 2 * 3);
        assert!(others < 390, "{others}");
    }

    #[test]
    fn what_has_not_happened_yet_is_zero_and_not_absent() {
        let text = Metrics::default().encode_plain().unwrap();
        for series in [
            r#"nodewhy_outcomes_total{outcome="Terminated"} 0"#,
            r#"nodewhy_writes_total{result="refused"} 0"#,
            r#"nodewhy_unreadable_objects_total{input="nodeclaims"} 0"#,
        ] {
            assert!(text.lines().any(|line| line == series), "{series} is not in\n{text}");
        }
    }

    #[test]
    fn every_metric_is_on_the_page_of_metrics() {
        let text = busy().encode_plain().unwrap();
        let names: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# HELP ")?.split_once(' '))
            .map(|(name, _)| name)
            .collect();
        assert!(names.len() > 15, "{names:?}");
        let page = include_str!("../../docs/metrics.md");
        // Prometheus adds `_total` to the samples of a counter, and OpenMetrics leaves it out of the name.
        let is_described = |name: &str| page.contains(&format!("`{name}"));
        let missing: Vec<_> = names.iter().filter(|name| !is_described(name)).collect();
        assert!(missing.is_empty(), "docs/metrics.md lacks {missing:?}");
    }

    #[test]
    fn no_series_outlives_its_reason() {
        let metrics = busy();
        metrics.open(std::iter::empty());
        for pool in ["general", "gpu", "spot"] {
            metrics.pool_gone(pool);
        }
        assert_eq!(series(&metrics).0, 0);
    }

    fn finding(level: Level, name: &str) -> LintFinding {
        LintFinding {
            file: String::new(),
            line: 0,
            column: 0,
            exact: true,
            level,
            cause: "KubeletRefusesLabels".to_owned(),
            message: "It fails.".to_owned(),
            fix: None,
            documentation: None,
            blame: Blame::object("karpenter.k8s.aws/v1", "EC2NodeClass", name),
        }
    }

    fn config_series(metrics: &Metrics) -> Vec<String> {
        let text = metrics.encode_plain().unwrap();
        text.lines().filter(|line| line.starts_with("nodewhy_config_findings{")).map(str::to_owned).collect()
    }

    #[test]
    fn a_finding_has_a_series_for_as_long_as_it_is_there() {
        let metrics = Metrics::default();
        let found = [finding(Level::Error, "batch"), finding(Level::Error, "batch"), finding(Level::Warning, "spot")];
        metrics.config_findings(found.iter());
        let series = config_series(&metrics);
        assert_eq!(series.len(), 2, "{series:#?}");
        let labels =
            [r#"kind="EC2NodeClass""#, r#"name="batch""#, r#"finding="KubeletRefusesLabels""#, r#"level="error""#];
        assert!(labels.iter().all(|label| series[0].contains(label)) && series[0].ends_with(" 2"), "{}", series[0]);
        metrics.config_findings(found[2..].iter());
        assert_eq!(config_series(&metrics).len(), 1);
        metrics.config_findings(std::iter::empty());
        assert_eq!(config_series(&metrics), [""; 0]);
    }

    #[test]
    fn findings_of_a_thousand_objects_are_a_bounded_number_of_series_and_errors_come_first() {
        let metrics = Metrics::default();
        let warnings = (0..1_000).map(|n| finding(Level::Warning, &format!("class-{n}")));
        let all: Vec<_> = warnings.chain([finding(Level::Error, "the-one")]).collect();
        metrics.config_findings(all.iter());
        let series = config_series(&metrics);
        assert_eq!(series.len(), CONFIG_FINDINGS);
        assert!(series[0].contains(r#"name="the-one""#), "{}", series[0]);
    }
}
