//! Chooses the logs that may settle an open verdict: those of agent pods on the Node that it points to, or Karpenter's.
//! Only Karpenter's log may say why pods wait that have no verdict.

use super::survey::Survey;
use crate::api::{Confidence, Named, NodeDiagnosis, NodeDiagnosisSpec, NodeDiagnosisStatus, Stage};
use crate::case::Case;
use crate::case::failing_round::held_up;
use crate::case::judging::Judging;
use crate::cluster_state::Subject;
use crate::explain::karpenter_ends::WHY_KARPENTER_ENDS;
use crate::objects::input::Input;
use crate::objects::{ContainerStatus, NodeClaim, NodePool, Pod};
use crate::rules;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::network_agents::server_of;
use logs::table::program_of;
use std::collections::BTreeMap;

/// The source of a log.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogSource {
    /// An agent on the Node of the machine.
    Agent(AgentLog),
    /// The Karpenter controller in this namespace, in any pod.
    Karpenter { namespace: String },
}

/// The containers of an agent's pod that have logged something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentLog {
    pub namespace: String,
    pub pod: String,
    /// The name of the program in the table of log lines, if the table knows its lines.
    pub program: Option<&'static str>,
    pub containers: Vec<AgentContainer>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentContainer {
    pub name: String,
    /// Whether it runs now. Otherwise its log has ended.
    pub runs: bool,
    /// Whether to read its log from before the last restart too: it runs again, and is not ready.
    pub has_previous: bool,
}

impl LogSource {
    pub fn namespace(&self) -> &str {
        match self {
            Self::Agent(agent) => &agent.namespace,
            Self::Karpenter { namespace } => namespace,
        }
    }

    /// A name that stays the same when containers restart.
    pub fn name(&self) -> String {
        match self {
            Self::Agent(agent) => format!("{}/pod/{}", agent.namespace, agent.pod),
            Self::Karpenter { namespace } => format!("{namespace}/karpenter"),
        }
    }
}

/// Whether a log may change the verdict. A log may take back what only a log has proven. Only Karpenter's log says why
/// Karpenter ends.
pub fn is_open(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.confidence != Confidence::Certain
        || leaves_open_why_karpenter_ends(verdict)
        || verdict.evidence.iter().any(|e| e.object.starts_with(POD_LOG))
}

fn leaves_open_why_karpenter_ends(verdict: &NodeDiagnosisStatus) -> bool {
    verdict.unknowns.iter().any(|unknown| *unknown.question == *WHY_KARPENTER_ENDS)
}

/// The prefix of evidence from the log of a pod, as in `kubectl logs --prefix`.
pub const POD_LOG: &str = "pod/";

/// The logs that the verdicts lead to: a limited number for each cause, and one for each cause before a second one for
/// any.
pub fn of_survey(judging: Judging, survey: &Survey, most: usize) -> Vec<LogSource> {
    let mut of_cause: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sources: Vec<(usize, LogSource)> = Vec::new();
    for diagnosis in &survey.diagnoses {
        let Some(verdict) = &diagnosis.status else { continue };
        let count = of_cause.entry(&verdict.cause).or_default();
        if *count >= most {
            continue;
        }
        let case = Subject::of(&diagnosis.spec.subject).and_then(|s| Case::of(judging, &s));
        for source in case.into_iter().flat_map(|case| log_sources(&case, verdict)) {
            if sources.iter().all(|(_, known)| *known != source) {
                sources.push((*count, source));
                *count += 1;
            }
        }
    }
    sources.sort_by_key(|(rank, _)| *rank);
    let mut sources: Vec<LogSource> = sources.into_iter().map(|(_, source)| source).collect();
    let of_waiting = of_waiting_pods(judging, survey.diagnoses.iter());
    sources.extend(of_waiting.filter(|own| !sources.contains(own)));
    sources
}

/// Karpenter's log, if a pod has waited for minutes although a NodePool could launch a machine for it and none is on
/// its way. Only the log says that Karpenter skips the NodePool or completes no round. A NodePool with a verdict does
/// not count.
pub fn of_waiting_pods<'d>(judging: Judging, verdicts: impl Iterator<Item = &'d NodeDiagnosis>) -> Option<LogSource> {
    let Judging { cluster, now, thresholds } = judging;
    let karpenter = cluster.karpenter().filter(|karpenter| karpenter.stopped.is_none())?;
    let is_late = |pod: &Pod| pod.metadata.creation_timestamp.is_some_and(|at| now - at >= thresholds.launch * 2);
    let is_on_its_way =
        |claim: &NodeClaim| !claim.is_true("Initialized") && claim.metadata.deletion_timestamp.is_none();
    let in_vain = |pool: &NodePool| {
        held_up(cluster, pool).any(is_late) && !cluster.claims_of_pool(pool.name()).any(is_on_its_way)
    };
    let mut untold: Vec<&NodePool> = cluster.pools().filter(|pool| in_vain(pool)).collect();
    if !untold.is_empty() {
        verdicts.for_each(|verdict| untold.retain(|pool| !is_about(&verdict.spec, pool)));
    }
    untold.first().and_then(|_| of_karpenter(karpenter))
}

/// Whether a verdict is about the NodePool, its node class or one of its machines.
fn is_about(told: &NodeDiagnosisSpec, pool: &NodePool) -> bool {
    let class = &pool.spec.template.spec.node_class_ref.name;
    let names = |named: &Option<Named>, own: &str| named.as_ref().is_some_and(|named| named.name == *own);
    names(&told.node_pool, pool.name()) || names(&told.node_class, class)
}

/// The logs that a verdict leads to. None if objects prove the verdict, or if no rule of the stage reads logs.
pub fn log_sources(case: &Case, verdict: &NodeDiagnosisStatus) -> Vec<LogSource> {
    let reads_logs = rules::of_stage(case.stage())
        .is_some_and(|of_stage| of_stage.rules.iter().any(|rule| rule.reads.contains(&Input::Logs)));
    if !is_open(verdict) || !reads_logs {
        return Vec::new();
    }
    if leaves_open_why_karpenter_ends(verdict) || matches!(case.stage(), Stage::Launch | Stage::Terminate) {
        return karpenter(case).into_iter().collect();
    }
    let agents: Vec<&Pod> = case.pods().filter(|pod| pod.daemon_set().is_some()).collect();
    let mut pointed_to: Vec<&Pod> = agents.iter().copied().filter(|pod| names(verdict, pod)).collect();
    // A verdict without a culprit leads to all agents that do not work and have lines in the table.
    if pointed_to.is_empty() {
        let is_known = |pod: &Pod| pod.daemon_set().is_some_and(|set| program_of(set).is_some());
        pointed_to = agents.into_iter().filter(|pod| !pod.is_ready() && is_known(pod)).collect();
    }
    let servers: Vec<&Pod> =
        pointed_to.iter().flat_map(|pod| servers(case, pod)).filter(|pod| names(verdict, pod)).collect();
    pointed_to.into_iter().chain(servers).filter_map(agent).map(LogSource::Agent).collect()
}

/// The pods, mostly of another Node, without which this agent does not work.
fn servers<'w>(case: &Case<'w>, agent: &Pod) -> Vec<&'w Pod> {
    let server = agent.daemon_set().and_then(server_of);
    let Some((server, namespace)) = server.zip(agent.metadata.namespace.as_deref()) else { return Vec::new() };
    case.cluster.pods_of_deployment(namespace, server.deployment).collect()
}

/// Karpenter's log names NodeClaims, node classes and NodePools.
fn karpenter(case: &Case) -> Option<LogSource> {
    of_karpenter(case.karpenter()?)
}

fn of_karpenter(karpenter: &Karpenter) -> Option<LogSource> {
    let (namespace, _) = karpenter.deployment.split_once('/')?;
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

/// The containers of a pod that are not ready, or all of them if each is ready.
fn agent(pod: &Pod) -> Option<AgentLog> {
    let program = program_of(pod.daemon_set().unwrap_or(&pod.metadata.name));
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

/// A container that has never run has no log. While it waits for a restart, the kubelet returns the log of its last
/// run.
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
