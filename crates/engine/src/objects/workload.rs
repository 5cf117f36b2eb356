//! Pods and what makes them: DaemonSets and Deployments.

use super::intern::Interned;
use super::quote::steady;
use super::{Affinity, Condition, Meta, Resources, Taint, conditions, message, nullable};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Meta,
    #[serde(deserialize_with = "of_pod")]
    pub spec: PodSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: PodStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    #[serde(deserialize_with = "nullable")]
    pub node_name: String,
    #[serde(deserialize_with = "nullable")]
    pub node_selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "nullable")]
    pub affinity: Affinity,
    #[serde(deserialize_with = "nullable")]
    pub tolerations: Vec<Toleration>,
    #[serde(deserialize_with = "nullable")]
    pub containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub init_containers: Vec<Container>,
    #[serde(deserialize_with = "nullable")]
    pub service_account_name: String,
    #[serde(deserialize_with = "nullable")]
    pub priority_class_name: Interned,
    #[serde(deserialize_with = "nullable")]
    pub host_network: bool,
    #[serde(deserialize_with = "nullable")]
    pub dns_policy: String,
    /// Those that a PersistentVolumeClaim gives. A template also keeps paths of the Node that it mounts without a type.
    #[serde(deserialize_with = "read_volumes")]
    pub volumes: Vec<Volume>,
}

/// A volume of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    #[serde(deserialize_with = "nullable")]
    pub persistent_volume_claim: ClaimSource,
    #[serde(deserialize_with = "nullable")]
    pub host_path: HostPath,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClaimSource {
    #[serde(deserialize_with = "nullable")]
    pub claim_name: String,
}

/// A path of the Node. The kubelet checks it only if it has a type.
/// Source: kubernetes v1.36.3 pkg/volume/hostpath/host_path.go `checkType`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct HostPath {
    #[serde(deserialize_with = "nullable")]
    pub path: String,
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
}

impl Volume {
    fn is_claimed(&self) -> bool {
        !self.persistent_volume_claim.claim_name.is_empty()
    }

    fn is_untyped_path(&self) -> bool {
        !self.host_path.path.is_empty() && self.host_path.type_.is_empty()
    }
}

/// A zone is what no other volume has, and a path without a type may become a directory: the rest is not kept.
fn read_volumes<'de, D: Deserializer<'de>>(volumes: D) -> Result<Vec<Volume>, D::Error> {
    let mut volumes: Vec<Volume> = nullable(volumes)?;
    volumes.retain(|volume| volume.is_claimed() || volume.is_untyped_path());
    Ok(volumes)
}

/// Each of many pods has the paths of its template.
fn of_pod<'de, D: Deserializer<'de>>(spec: D) -> Result<PodSpec, D::Error> {
    let mut spec: PodSpec = nullable(spec)?;
    spec.volumes.retain(Volume::is_claimed);
    spec.volumes.shrink_to_fit();
    Ok(spec)
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Container {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub image: String,
    #[serde(deserialize_with = "environment")]
    pub env: Vec<EnvVar>,
    #[serde(deserialize_with = "nullable")]
    pub resources: Resources,
    /// Those of the Node that it takes.
    #[serde(deserialize_with = "of_host")]
    pub ports: Vec<ContainerPort>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerPort {
    #[serde(deserialize_with = "nullable")]
    pub host_port: u16,
}

/// In the Node's network each port is one of the Node's: the API server says so by itself.
/// Source: kubernetes v1.36.3 pkg/apis/core/v1/defaults.go `defaultHostNetworkPorts`.
fn of_host<'de, D: Deserializer<'de>>(ports: D) -> Result<Vec<ContainerPort>, D::Error> {
    let mut ports: Vec<ContainerPort> = nullable(ports)?;
    ports.retain(|port| port.host_port != 0);
    ports.shrink_to_fit();
    Ok(ports)
}

/// The environment variables that rules read, of Karpenter, of the VPC CNI, of device plugins, of istiod, and of pods
/// that call AWS. All others are left out where an object is read, for they hold what is nobody's business.
const ENVIRONMENT: [&str; 26] = [
    "ANNOTATE_POD_IP",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_ENABLE_POD_ENI",
    "AWS_FEATURE_GATES",
    "AWS_ROLE_ARN",
    "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
    "CLUSTER_CA_BUNDLE",
    "CLUSTER_ENDPOINT",
    "CLUSTER_NAME",
    "DISABLE_TCP_EARLY_DEMUX",
    "DISABLE_WEBHOOK",
    "ENABLE_IPv6",
    "ENABLE_POD_ENI",
    "ENABLE_PREFIX_DELEGATION",
    "FAIL_ON_INIT_ERROR",
    "ENABLE_REBALANCE_MONITORING",
    "ENI_CONFIG_ANNOTATION_DEF",
    "ENI_CONFIG_LABEL_DEF",
    "FEATURE_GATES",
    "INTERRUPTION_QUEUE",
    "KUBERNETES_SERVICE_HOST",
    "LEGACY_NODE_REPAIR",
    "PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS",
    "POD_SECURITY_GROUP_ENFORCING_MODE",
    "RESERVED_ENIS",
    "VM_MEMORY_OVERHEAD_PERCENT",
];

fn environment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<EnvVar>, D::Error> {
    let all: Vec<EnvVar> = nullable(deserializer)?;
    Ok(all.into_iter().filter(|variable| ENVIRONMENT.contains(&variable.name.as_str())).collect())
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EnvVar {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub value: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Toleration {
    #[serde(deserialize_with = "nullable")]
    pub key: String,
    #[serde(deserialize_with = "nullable")]
    pub operator: String,
    #[serde(deserialize_with = "nullable")]
    pub value: String,
    #[serde(deserialize_with = "nullable")]
    pub effect: String,
}

impl Toleration {
    /// Source: kubernetes k8s.io/api/core/v1/toleration.go `ToleratesTaint` (v0.36.3).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.operator.as_str() {
                "Exists" => true,
                "" | "Equal" => !self.key.is_empty() && self.value == taint.value,
                _ => false,
            }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    #[serde(deserialize_with = "nullable")]
    pub phase: String,
    #[serde(with = "message")]
    pub reason: String,
    #[serde(with = "message")]
    pub message: String,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
    #[serde(deserialize_with = "nullable")]
    pub container_statuses: Vec<ContainerStatus>,
    #[serde(deserialize_with = "nullable")]
    pub init_container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub ready: bool,
    #[serde(deserialize_with = "nullable")]
    pub restart_count: u32,
    #[serde(deserialize_with = "nullable")]
    pub state: ContainerState,
    #[serde(deserialize_with = "nullable")]
    pub last_state: ContainerState,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ContainerState {
    pub waiting: Option<Waiting>,
    pub terminated: Option<Terminated>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Waiting {
    #[serde(with = "message")]
    pub reason: String,
    #[serde(with = "message")]
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Terminated {
    #[serde(with = "message")]
    pub reason: String,
    #[serde(with = "message")]
    pub message: String,
    pub exit_code: Option<i64>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Pod {
    /// The requests of its containers, by resource and quantity. A resource appears once for each container that
    /// requests it.
    pub fn requests(&self) -> impl Iterator<Item = (&str, &str)> {
        self.spec.containers.iter().flat_map(|container| container.resources.requests.iter())
    }

    pub fn is_ready(&self) -> bool {
        conditions(&self.status.conditions, "Ready").is_some_and(Condition::is_true)
    }

    /// Since when it is Ready.
    pub fn ready_since(&self) -> Option<DateTime<Utc>> {
        conditions(&self.status.conditions, "Ready").filter(|ready| ready.is_true())?.last_transition_time
    }

    /// The DaemonSet that made this pod.
    pub fn daemon_set(&self) -> Option<&str> {
        self.metadata.owner_references.iter().find(|o| o.kind == "DaemonSet").map(|o| o.name.as_str())
    }

    /// The kind and name of the object to edit in order to change all pods like this one: the Deployment behind a
    /// ReplicaSet, another owner, or the pod itself.
    /// Source: kubernetes v1.36.3 pkg/controller/deployment/sync.go `getNewReplicaSet`, which names the ReplicaSet.
    pub fn workload(&self) -> (&str, &str) {
        let Some(owner) = self.metadata.owner_references.first() else { return ("Pod", &self.metadata.name) };
        if owner.kind == "ReplicaSet"
            && let Some((deployment, hash)) = owner.name.rsplit_once('-')
            && (self.metadata.label("pod-template-hash") == Some(hash) || is_pod_template_hash(hash))
        {
            return ("Deployment", deployment);
        }
        (&owner.kind, &owner.name)
    }

    /// Whether a Deployment of this name made it. If its owner does not name one, the pod's own name tells.
    pub fn is_of_deployment(&self, deployment: &str) -> bool {
        match self.workload() {
            ("Deployment", name) => name == deployment,
            ("ReplicaSet" | "Pod", _) => {
                self.metadata.name.strip_prefix(deployment).is_some_and(|rest| rest.starts_with('-'))
            }
            _ => false,
        }
    }

    /// The Node that it runs on, or that a DaemonSet created it for. Empty if there is none.
    pub fn node(&self) -> &str {
        if self.spec.node_name.is_empty() {
            self.spec.affinity.node().unwrap_or_default()
        } else {
            &self.spec.node_name
        }
    }

    /// Why no Node has taken it, as the scheduler says.
    /// Source: kubernetes v1.36.3 pkg/scheduler/schedule_one.go `handleSchedulingFailure`.
    pub fn unscheduled(&self) -> Option<&str> {
        let scheduled =
            conditions(&self.status.conditions, "PodScheduled").filter(|_| self.spec.node_name.is_empty())?;
        scheduled.is_false().then_some(scheduled.message.as_str()).filter(|said| !said.is_empty())
    }

    /// Whether any of its containers has run.
    pub fn has_started(&self) -> bool {
        let statuses = self.status.init_container_statuses.iter().chain(&self.status.container_statuses);
        statuses.into_iter().any(|c| c.state.waiting.is_none() || c.last_state.terminated.is_some())
    }

    pub fn is_same_workload(&self, other: &Self) -> bool {
        self.workload() == other.workload()
    }

    /// Whether the other was made of the same text: a ReplicaSet has one only, and of each of their own DaemonSets and
    /// StatefulSets keep a revision.
    /// Source: kubernetes v1.36.3 k8s.io/api/apps/v1/types.go `ControllerRevisionHashLabelKey`.
    pub fn is_same_text(&self, other: &Self) -> bool {
        let text = |pod: &'_ Self| {
            let owner = pod.metadata.owner_references.first().map(|o| (o.kind.to_string(), o.name.to_string()));
            (owner, pod.metadata.label("controller-revision-hash").map(str::to_owned))
        };
        text(self).0.is_some() && text(self) == text(other)
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    /// Whether it is over for good: nothing of it runs again.
    pub fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
    }

    /// Whether any of its containers runs now.
    pub fn runs(&self) -> bool {
        self.containers().any(|c| c.state.waiting.is_none() && c.state.terminated.is_none())
    }

    /// The ports of its Node that it takes.
    pub fn host_ports(&self) -> impl Iterator<Item = u16> {
        let containers = self.spec.init_containers.iter().chain(&self.spec.containers);
        containers.flat_map(|container| &container.ports).map(|own| own.host_port).filter(|port| *port != 0)
    }

    pub fn takes_host_port(&self, port: u16) -> bool {
        self.host_ports().any(|own| own == port)
    }

    /// When the last of its containers ended, where one has.
    pub fn stopped_at(&self) -> Option<DateTime<Utc>> {
        let ended = self.containers().flat_map(|c| [&c.state.terminated, &c.last_state.terminated]);
        ended.flatten().filter_map(|ended| ended.finished_at).max()
    }

    /// The runtime's message if it cannot create a container of this pod.
    /// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_container.go `ErrCreateContainer`.
    pub fn refused_container(&self) -> Option<&str> {
        let waiting = self.containers().filter_map(|c| c.state.waiting.as_ref());
        waiting.filter(|w| w.reason == "CreateContainerError").map(|w| w.message.as_str()).next()
    }

    /// Why a container does not run: the first one that waits, or died last.
    pub fn trouble(&self) -> Option<(&str, String)> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses).filter(|c| !c.ready).find_map(
            |c| {
                let waiting = c
                    .state
                    .waiting
                    .as_ref()
                    .filter(|w| !matches!(w.reason.as_str(), "PodInitializing" | "ContainerCreating"));
                let died =
                    c.state.terminated.as_ref().or(c.last_state.terminated.as_ref()).filter(|t| t.exit_code != Some(0));
                match (waiting, died) {
                    (Some(w), Some(t)) => {
                        let died = if t.reason == OUT_OF_MEMORY { OUT_OF_MEMORY } else { "" };
                        Some((c.name.as_str(), join(&w.reason, &[died, &w.message, &t.message])))
                    }
                    (Some(w), None) => Some((c.name.as_str(), join(&w.reason, &[&w.message]))),
                    (None, Some(t)) => Some((c.name.as_str(), join(&t.reason, &[&t.message]))),
                    (None, None) => None,
                }
            },
        )
    }
}

/// The reason of a container that was killed over its memory limit.
/// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime, containerd v2.1 internal/cri/server/events.go.
pub const OUT_OF_MEMORY: &str = "OOMKilled";

/// Whether it can be the hash that a Deployment writes at the end of its ReplicaSet's name: digits, each written as one
/// of ten letters.
/// Source: kubernetes v1.36.3 pkg/controller/controller_utils.go `ComputeHash`, and
/// staging/src/k8s.io/apimachinery/pkg/util/rand/rand.go `SafeEncodeString`.
fn is_pod_template_hash(name: &str) -> bool {
    (8..=10).contains(&name.len()) && name.bytes().all(|letter| b"456789bcdf".contains(&letter))
}

fn join(reason: &str, messages: &[&str]) -> String {
    messages.iter().filter(|m| !m.is_empty()).fold(reason.to_owned(), |mut out, message| {
        out.push_str(": ");
        out.push_str(&steady(message.trim()));
        out
    })
}

/// The part of a workload that says what its pods look like.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    #[serde(deserialize_with = "nullable")]
    pub template: PodTemplate,
    /// Of a DaemonSet.
    #[serde(deserialize_with = "nullable")]
    pub update_strategy: UpdateStrategy,
}

/// Source: kubernetes v1.36.3 staging/src/k8s.io/api/apps/v1/types.go `DaemonSetUpdateStrategy`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct UpdateStrategy {
    /// `RollingUpdate` if empty.
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct PodTemplate {
    #[serde(deserialize_with = "nullable")]
    pub spec: PodSpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct DaemonSet {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: Workload,
    #[serde(deserialize_with = "nullable")]
    pub status: DaemonSetStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonSetStatus {
    #[serde(deserialize_with = "nullable")]
    pub desired_number_scheduled: u32,
}

impl DaemonSet {
    /// DaemonSet pods get these tolerations from the controller itself. That of a Node that is not Ready is only for
    /// pods that run already: its taint with `NoSchedule` keeps a new one away.
    /// Source: kubernetes v1.36.3 pkg/controller/daemon/util/daemonset_util.go `AddOrUpdateDaemonPodTolerations`.
    const IMPLICIT: [(&'static str, &'static str); 6] = [
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoExecute"),
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/memory-pressure", "NoSchedule"),
        ("node.kubernetes.io/pid-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    ];

    /// And this one where they are in the network of the host.
    const IMPLICIT_ON_HOST: (&'static str, &'static str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

    /// Whether a change of its template reaches a Node only when somebody deletes the pod there.
    pub fn waits_for_deletion(&self) -> bool {
        self.spec.update_strategy.type_ == "OnDelete"
    }

    /// The value of an environment variable, from the first container that has it.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.spec
            .template
            .spec
            .containers
            .iter()
            .flat_map(|c| &c.env)
            .find(|e| e.name == name)
            .map(|e| e.value.as_str())
    }

    /// The same, of an init container too.
    pub fn env_of_any(&self, name: &str) -> Option<&str> {
        let mut of_init = self.spec.template.spec.init_containers.iter().flat_map(|c| &c.env);
        self.env(name).or_else(|| of_init.find(|e| e.name == name).map(|e| e.value.as_str()))
    }

    /// Whether its pods mount this path of the Node without a type.
    pub fn mounts_untyped(&self, path: &str) -> bool {
        let is_it = |volume: &Volume| volume.host_path.path.trim_end_matches('/') == path.trim_end_matches('/');
        self.spec.template.spec.volumes.iter().any(|volume| volume.is_untyped_path() && is_it(volume))
    }

    pub fn tolerates(&self, taint: &Taint) -> bool {
        let of_taint = (taint.key.as_str(), taint.effect.as_str());
        let on_host = self.spec.template.spec.host_network && of_taint == Self::IMPLICIT_ON_HOST;
        let implicit = on_host || Self::IMPLICIT.contains(&of_taint);
        implicit || self.spec.template.spec.tolerations.iter().any(|t| t.tolerates(taint))
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Deployment {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: DeploymentSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: DeploymentStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct DeploymentSpec {
    pub replicas: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    pub template: PodTemplate,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    #[serde(deserialize_with = "nullable")]
    pub available_replicas: u32,
    #[serde(deserialize_with = "nullable")]
    pub unavailable_replicas: u32,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}
