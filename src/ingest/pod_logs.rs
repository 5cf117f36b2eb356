//! The last lines of the pods that verdicts point to, out of the API server, with the rights of whoever asks.
//!
//! Nothing is asked while no verdict is open. What cannot be read is a note: the verdict stands without it.

use crate::kube_client::failure;
use crate::kube_client::raw::Raw;
use chrono::{DateTime, Utc};
use engine::diagnose::log_source::{AgentContainer, AgentLog, LogSource, POD_LOG};
use engine::objects::input::{Input, Object};
use engine::objects::{ContainerState, MachineLog};
use engine::triage::change::ReadFailure;
use futures::{AsyncReadExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, ApiResource, ListParams, LogParams};
use logs::journey::Journey;
use logs::table::KARPENTER;
use logs::{ContainerLog, FileLimits, LogReader};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Limits on size and time.
#[derive(Debug, Clone, Copy)]
pub struct PodLogLimits {
    pub pods: usize,
    /// The last lines of a container.
    pub lines: i64,
    /// The first bytes of these lines. The kubelet counts lines from the end, then bytes from the first of them.
    pub bytes: u32,
    /// Containers at once.
    pub abreast: usize,
    /// Time limit for one container. Lines received until then count.
    pub answer: Duration,
    /// Time limit for all containers.
    pub all: Duration,
}

impl Default for PodLogLimits {
    fn default() -> Self {
        Self {
            pods: 10,
            lines: 1_000,
            bytes: 2 << 20,
            abreast: 4,
            answer: Duration::from_secs(5),
            all: Duration::from_secs(20),
        }
    }
}

/// The result of reading the logs of pods.
#[derive(Debug, Default)]
pub struct PodLogs {
    pub logs: Vec<MachineLog>,
    /// Logs that could not be read, grouped by reason.
    pub notes: Vec<String>,
}

/// Reads the logs of these pods.
pub async fn read(client: &Client, sources: &[LogSource], limits: PodLogLimits, now: DateTime<Utc>) -> PodLogs {
    let until = Instant::now() + limits.all;
    let mut failures = Vec::new();
    let mut wanted = Vec::new();
    for source in sources {
        match source {
            LogSource::Agent(agent) => wanted.push(agent.clone()),
            LogSource::Karpenter { namespace } => match karpenter(client, namespace, until).await {
                Ok(pods) => wanted.extend(pods),
                Err(failure) => failures.push((format!("Karpenter's pods in {namespace}"), failure)),
            },
        }
    }
    let is_all = wanted.len() <= limits.pods;
    wanted.truncate(limits.pods);
    let parts = wanted.into_iter().flat_map(parts);
    let read = stream::iter(parts).map(|part| part.read(client, limits, until)).buffered(limits.abreast);
    let read: Vec<_> = read.collect().await;
    let mut reader = LogReader::new(FileLimits::default());
    for (part, text, failure) in read {
        let of = ContainerLog {
            pod: &part.pod,
            program: part.program,
            runs_at: (part.container.runs && !part.previous).then_some(now),
        };
        // Memory does not fail, and what is no text says nothing.
        let _ = reader.container(&part.name(), text.as_slice(), of);
        failures.extend(failure.map(|failure| (format!("the log of {}", part.name()), failure)));
    }
    let mut notes = failure::once_a_reason(&failures);
    if !is_all {
        notes.push(format!("nodewhy read the logs of {} pods, but verdicts point to more: pass one NAME", limits.pods));
    }
    // Karpenter speaks of all that it launches.
    let tells = |journey: &Journey| !journey.identity.pods.is_empty() || !journey.open().is_empty();
    let journeys = reader.journeys().into_iter().filter(tells);
    PodLogs { logs: journeys.map(MachineLog::of_component).collect(), notes }
}

/// One request.
#[derive(Debug)]
struct Part {
    namespace: String,
    pod: String,
    program: Option<&'static str>,
    container: AgentContainer,
    previous: bool,
}

/// The requests for an agent. Logs from before a restart come first.
fn parts(agent: AgentLog) -> Vec<Part> {
    let AgentLog { namespace, pod, program, containers } = agent;
    let before_and_now = |container: AgentContainer| {
        [true, false].map(|previous| Part {
            namespace: namespace.clone(),
            pod: pod.clone(),
            program,
            container: container.clone(),
            previous,
        })
    };
    let parts = containers.into_iter().flat_map(before_and_now);
    parts.filter(|part| !part.previous || part.container.has_previous).collect()
}

impl Part {
    /// The name that kubectl's `--prefix` prints.
    fn name(&self) -> String {
        let before = if self.previous { ", before its restart" } else { "" };
        format!("{POD_LOG}{}/{}{before}", self.pod, self.container.name)
    }

    /// The bytes received in time, and the reason if they are not all.
    async fn read(self, client: &Client, limits: PodLogLimits, until: Instant) -> (Part, Vec<u8>, Option<ReadFailure>) {
        let pods: Api<Raw> = Api::namespaced_with(client.clone(), &self.namespace, &pods());
        let params = LogParams {
            container: Some(self.container.name.clone()),
            previous: self.previous,
            tail_lines: Some(limits.lines),
            limit_bytes: Some(limits.bytes.into()),
            timestamps: true,
            ..LogParams::default()
        };
        let mut text = Vec::new();
        let until = until.min(Instant::now() + limits.answer);
        let answer = async {
            let stream = pods.log_stream(&self.pod, &params).await.map_err(|error| of_pod(&error))?;
            // The server may ignore the requested limit.
            let read = stream.take(limits.bytes.into()).read_to_end(&mut text).await;
            read.map_err(|error| ReadFailure::Unanswered(error.to_string()))
        };
        let failure = match timeout_at(until, answer).await {
            Ok(Ok(_)) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(ReadFailure::Unanswered("no answer in time".to_owned())),
        };
        (self, text, failure)
    }
}

/// All replicas of Karpenter. Only the leader does work, and only the logs show which replica leads.
async fn karpenter(client: &Client, namespace: &str, until: Instant) -> Result<Vec<AgentLog>, ReadFailure> {
    /// Source: karpenter-provider-aws v1.14.1 charts/karpenter/templates/deployment.yaml.
    const CONTAINER: &str = "controller";
    const REPLICAS: u32 = 2;
    let resource = pods();
    let pods: Api<Raw> = Api::namespaced_with(client.clone(), namespace, &resource);
    let params = ListParams::default().labels("app.kubernetes.io/name=karpenter").limit(REPLICAS);
    let listed = timeout_at(until, pods.list(&params)).await;
    let listed = listed.map_err(|_| ReadFailure::Unanswered("no answer in time".to_owned()))?;
    let mut agents = Vec::new();
    for pod in listed.map_err(|error| failure::of(&error))?.items {
        let read = pod.read(Input::Pods, &resource);
        let (object, _) = read.map_err(|why| ReadFailure::Unanswered(failure::said(&why)))?;
        let Object::Pod(agent) = object else { continue };
        let own = agent.status.container_statuses.iter().find(|container| container.name == CONTAINER);
        let ended = |state: Option<&ContainerState>| state.is_some_and(|state| state.terminated.is_some());
        let waits = own.is_some_and(|own| own.state.waiting.is_some());
        let runs = !waits && !ended(own.map(|own| &own.state));
        // A ready container does not explain its earlier exit.
        let has_previous = !waits && own.is_some_and(|own| !own.ready && ended(Some(&own.last_state)));
        agents.push(AgentLog {
            namespace: namespace.to_owned(),
            pod: pod.name().to_owned(),
            program: Some(KARPENTER),
            containers: vec![AgentContainer { name: CONTAINER.to_owned(), runs, has_previous }],
        });
    }
    Ok(agents)
}

/// Pods, whose objects stay text: the complete type would bring every type within it into the program.
fn pods() -> ApiResource {
    ApiResource::erase::<Pod>(&())
}

/// The meaning of a failed request for a log.
fn of_pod(error: &kube::Error) -> ReadFailure {
    match error {
        kube::Error::Api(status) if status.code == 404 => ReadFailure::Unanswered("it is gone".to_owned()),
        other => failure::of(other),
    }
}
