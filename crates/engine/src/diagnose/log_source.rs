//! Whose log may prove what a verdict leaves open: the agents' pods on the Node that it points to, or Karpenter's.

use super::survey::Survey;
use crate::api::{Confidence, NodeDiagnosisStatus, Stage};
use crate::case::Case;
use crate::case::stage::Thresholds;
use crate::cluster_state::{ClusterState, Subject};
use crate::objects::input::Input;
use crate::objects::{ContainerStatus, Pod};
use crate::rules;
use crate::rules::shared::karpenter_ends::WHY_KARPENTER_ENDS;
use chrono::{DateTime, Utc};
use logs::table::program_of;
use std::collections::BTreeMap;

/// Whose log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSource {
    /// An agent's, on the Node of the machine.
    Agent(AgentLog),
    /// Karpenter's controller in that namespace, whichever pod it is.
    Karpenter { namespace: String },
}

/// The containers of an agent's pod that have logged something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentLog {
    pub namespace: String,
    pub pod: String,
    /// What the table of log lines calls the program that it runs.
    pub program: &'static str,
    pub containers: Vec<AgentContainer>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentContainer {
    pub name: String,
    /// It runs now; else its log has ended.
    pub runs: bool,
    /// What it logged before its last restart counts too: it runs anew, and is not ready.
    pub has_previous: bool,
}

impl LogSource {
    pub fn namespace(&self) -> &str {
        match self {
            Self::Agent(agent) => &agent.namespace,
            Self::Karpenter { namespace } => namespace,
        }
    }

    /// The same, whatever its containers do meanwhile.
    pub fn name(&self) -> String {
        match self {
            Self::Agent(agent) => format!("{}/pod/{}", agent.namespace, agent.pod),
            Self::Karpenter { namespace } => format!("{namespace}/karpenter"),
        }
    }
}

/// Whether a log may tell more: what only a log has proven, it may take back, and why Karpenter ends its log alone says.
pub fn is_open(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.confidence != Confidence::Certain
        || leaves_open_why_karpenter_ends(verdict)
        || verdict.evidence.iter().any(|e| e.object.starts_with(POD_LOG))
}

fn leaves_open_why_karpenter_ends(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.unknowns.iter().any(|unknown| *unknown.question == *WHY_KARPENTER_ENDS)
}

/// How evidence out of a pod's log calls it: as `kubectl logs --prefix`.
pub const POD_LOG: &str = "pod/";

/// The logs that the verdicts lead to: of each cause so many, and of each cause one before the second of any.
pub fn of_survey(
    cluster: &ClusterState,
    survey: &Survey,
    now: DateTime<Utc>,
    thresholds: &Thresholds,
    most: usize,
) -> Vec<LogSource> {
    let mut of_cause: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sources: Vec<(usize, LogSource)> = Vec::new();
    for diagnosis in &survey.diagnoses {
        let Some(verdict) = &diagnosis.status else { continue };
        let count = of_cause.entry(&verdict.cause).or_default();
        if *count >= most {
            continue;
        }
        let case = Subject::of(&diagnosis.spec.subject).and_then(|s| Case::of(cluster, &s, now, thresholds));
        for source in case.into_iter().flat_map(|case| log_sources(&case, verdict)) {
            if sources.iter().all(|(_, known)| *known != source) {
                sources.push((*count, source));
                *count += 1;
            }
        }
    }
    sources.sort_by_key(|(rank, _)| *rank);
    sources.into_iter().map(|(_, source)| source).collect()
}

/// The logs that a verdict leads to. None where objects prove it, where no rule of the stage reads logs, and where
/// nobody knows what the program's lines mean.
pub fn log_sources(case: &Case, verdict: &NodeDiagnosisStatus) -> Vec<LogSource> {
    let reads_logs = rules::of_stage(case.stage())
        .is_some_and(|of_stage| of_stage.rules.iter().any(|rule| rule.reads.contains(&Input::Logs)));
    if !is_open(verdict) || !reads_logs {
        return Vec::new();
    }
    if leaves_open_why_karpenter_ends(verdict) || matches!(case.stage(), Stage::Launch | Stage::Terminate) {
        return karpenter(case).into_iter().collect();
    }
    let of_set = |pod: &&Pod| pod.daemon_set().is_some_and(|set| program_of(set).is_some());
    let agents: Vec<&Pod> = case.pods().filter(of_set).collect();
    let mut pointed_to: Vec<&Pod> = agents.iter().copied().filter(|pod| names(verdict, pod)).collect();
    // A verdict that names nobody leaves all of them that do not work.
    if pointed_to.is_empty() {
        pointed_to = agents.into_iter().filter(|pod| !pod.is_ready()).collect();
    }
    pointed_to.into_iter().filter_map(agent).map(LogSource::Agent).collect()
}

/// Karpenter speaks of NodeClaims, node classes and NodePools.
fn karpenter(case: &Case) -> Option<LogSource> {
    let (namespace, _) = case.karpenter()?.deployment.split_once('/')?;
    Some(LogSource::Karpenter { namespace: namespace.to_owned() })
}

fn names(verdict: &NodeDiagnosisStatus, pod: &Pod) -> bool {
    let links = verdict.chain.iter().map(|link| &*link.object);
    let evidence = verdict.evidence.iter().map(|evidence| &*evidence.object);
    let mut objects = links.chain(evidence).chain(verdict.blame.iter().map(|blame| &*blame.object));
    objects.any(|object| match object.split_once('/') {
        Some(("Pod", name)) => *pod.metadata.name == *name,
        Some(("DaemonSet", name)) => pod.daemon_set() == Some(name),
        Some(("pod", log)) => log.split('/').next() == Some(&*pod.metadata.name),
        _ => false,
    })
}

/// Those of its containers that are not ready; all of them where each is.
fn agent(pod: &Pod) -> Option<AgentLog> {
    let program = program_of(pod.daemon_set()?)?;
    let status = &pod.status;
    let is_done = |c: &&ContainerStatus| c.state.terminated.as_ref().is_some_and(|ended| ended.exit_code == Some(0));
    let of_start = status.init_container_statuses.iter().filter(|c| !is_done(c) && !c.ready);
    let mut failing: Vec<_> = of_start.chain(status.container_statuses.iter().filter(|c| !c.ready)).collect();
    if failing.is_empty() {
        failing = status.container_statuses.iter().collect();
    }
    let containers: Vec<AgentContainer> = failing.into_iter().filter_map(container).collect();
    let (namespace, pod) = (pod.metadata.namespace.as_ref()?.to_string(), pod.metadata.name.to_string());
    (!containers.is_empty()).then_some(AgentLog { namespace, pod, program, containers })
}

/// One that has never run has no log. While one waits to run anew, the kubelet gives the log of its last run.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_pods.go `validateContainerLogStatus`.
fn container(status: &ContainerStatus) -> Option<AgentContainer> {
    let ran_before = status.last_state.terminated.is_some();
    let waits = status.state.waiting.is_some();
    let runs = !waits && status.state.terminated.is_none();
    (ran_before || !waits).then(|| AgentContainer {
        name: status.name.clone(),
        runs,
        has_previous: ran_before && !waits && !status.ready,
    })
}
