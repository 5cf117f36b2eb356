//! The stages of a machine's life, and whether it waits at one for too long.
//!
//! A rule only ever explains a machine that is stuck here. A machine that passes its stages in time has no diagnosis,
//! whatever conditions, taints or noisy events it carries.

use crate::api::{Evidence, Outcome, Stage};
use crate::case::left_taint;
use crate::case::reboot;
use crate::case::unplaced::Unplaced;
use crate::objects::{Condition, Event, MachineLog, Node, NodeClaim, NodeClass, NodePool, Pod, Taint};
use crate::upstream::cloud_controller;
use crate::upstream::cordons::{self, Cordoner};
use crate::upstream::karpenter::{self, DISRUPTED_TAINTS, REBOOTING_TAINT, UNINITIALIZED_TAINT, UNREGISTERED_TAINT};
use crate::upstream::startup_taint;
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::{LogLine, Phase, Trouble};
use logs::table::runs_in_pods;

/// How long a machine may wait at a stage before it counts as stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// Created, but no instance.
    pub launch: TimeDelta,
    /// Instance launched, but no Node. Counted from the launch, not from the claim's creation.
    pub join: TimeDelta,
    /// Node there, but not registered by Karpenter.
    pub register: TimeDelta,
    /// Registered, but not initialized.
    pub initialize: TimeDelta,
    /// The same where device plugins or drivers are awaited.
    pub devices: TimeDelta,
    /// Ready before, not Ready or of no use now; twice that for pressure and missing addresses.
    pub ready: TimeDelta,
    /// Deleted, and no step further since.
    pub terminate: TimeDelta,
    /// The least wait at any stage: enough where the cause is proven, or where an older machine of the same class is
    /// stuck there.
    pub proven: TimeDelta,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            launch: TimeDelta::minutes(2),
            join: TimeDelta::minutes(5),
            register: TimeDelta::minutes(2),
            initialize: TimeDelta::minutes(5),
            devices: TimeDelta::minutes(10),
            ready: TimeDelta::minutes(5),
            terminate: TimeDelta::hours(1),
            proven: TimeDelta::minutes(2),
        }
    }
}

/// The stage that a machine waits at.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    pub stage: Stage,
    /// Since when, as the objects tell it.
    pub since: DateTime<Utc>,
    /// How long is normal.
    pub patience: TimeDelta,
    /// How long is normal where the cause is proven.
    pub proven: TimeDelta,
    /// What shows that it waits.
    pub evidence: Evidence,
    pub symptom: Symptom,
}

/// Distinguishes a wait from other waits at the same stage, if a rule needs that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Symptom {
    /// The stage is not passed.
    #[default]
    NotPassed,
    /// The cloud controller has deleted the Node.
    NodeDeleted,
    /// The Node is gone, whoever deleted it.
    NodeGone,
    /// The kubelet cannot start the pods that are scheduled there.
    PodsRefused,
    /// The network plugin calls the network of the Node unavailable.
    NetworkUnavailable,
    /// The Node flaps between Ready and NotReady.
    ByTurns,
    /// The kubelet kills a network agent of the Node again and again.
    AgentKilled,
    /// A network agent of the Node has been unready for too long.
    AgentFails,
    /// Pods wait for devices that it does not offer, and what makes them known does not work there.
    DeviceMissing,
    /// Its kubelet rejects the pods that are scheduled there.
    PodsRejected,
    /// Its address is of another IP family than the cluster's.
    OtherFamily,
    /// EC2 attaches no volume more.
    VolumeRefused,
    /// It has no driver for a volume.
    DriverMissing,
    /// Pods fail there that run on Nodes of another image.
    PodsFailOnImage,
    /// Pods there are out of reach since an agent of their network was replaced.
    OutOfReach,
    /// The accelerator is called broken.
    HardwareBroken,
    /// A controller has cordoned it, and left it so.
    Cordoned,
    /// A taint that takes it out of service for a while has stood for longer than that.
    TaintLeft,
    /// It was emptied but for pods that a PodDisruptionBudget lets not go.
    DrainHeld,
    /// It is cordoned and emptied, and pods come back to it that tolerate the cordon.
    DrainRefilled,
    /// Load balancers do not take it, for two of its security groups have the cluster's tag.
    TaggedTwice,
    /// Its instance was stopped.
    InstanceStopped,
    /// Karpenter has decided to reboot it, and has not got the reboot yet.
    RebootPending,
    /// Pods wait for a machine, and Karpenter does not run to make one.
    NobodyLaunches,
    /// Pods wait for a machine, and a webhook refuses the NodeClaim that Karpenter would make.
    ClaimsRefused,
    /// Pods wait for a machine, and Karpenter leaves them alone.
    PodsIgnored,
    /// Pods wait for a machine in a reservation, and Karpenter puts them off without a word.
    PodsDeferred,
    /// Pods wait for a machine, and whatever Karpenter would do for them fails.
    RoundsFail,
    /// Karpenter leaves the NodePool alone.
    Inert(Inert),
    /// Machines of a static NodePool have drifted, and there is no room for those that would replace them.
    DriftHeld,
    /// Machines of the NodePool drift as soon as they run, and are replaced again and again.
    DriftsAtOnce,
    /// Machines of the NodePool are removed as empty before the pod gets there that they are made for.
    EmptiedEarly,
    /// On each machine that is made for a pod the port is taken that it asks for.
    PortHeld,
    /// Many machines of the NodePool wait for Karpenter, which takes on one after the other.
    KarpenterBehind,
}

/// Why Karpenter makes no machine of a NodePool, whatever waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inert {
    /// It is static, and the feature gate for that is off.
    StaticCapacityOff,
    /// Its node class is of another Karpenter than the one that runs here.
    ClassNotServed,
    /// It is for EKS Auto Mode, and nobody works on anything of Auto Mode's.
    AutoModeOff,
}

impl Wait {
    pub(super) fn new(
        stage: Stage,
        since: DateTime<Utc>,
        patience: TimeDelta,
        thresholds: &Thresholds,
        evidence: Evidence,
    ) -> Self {
        Self { stage, since, patience, proven: thresholds.proven.min(patience), evidence, symptom: Symptom::NotPassed }
    }

    /// Worth a diagnosis only where something proves why.
    pub(super) fn only_with_proof(mut self) -> Self {
        self.patience = TimeDelta::MAX;
        self
    }

    pub(super) fn of_static_drift(claim: &NodeClaim, since: DateTime<Utc>, t: &Thresholds) -> Self {
        let drifted = claim.condition("Drifted").map(Condition::shown).unwrap_or_default();
        let object = format!("NodeClaim/{}", claim.name());
        let because = "the machine is not as its NodePool or node class asks for any more, and none replaces it";
        let evidence = Evidence::new(object, r#"status.conditions[?(@.type=="Drifted")]"#, drifted, because);
        Self { symptom: Symptom::DriftHeld, ..Self::new(Stage::Launch, since, t.terminate, t, evidence) }
            .only_with_proof()
    }

    pub(super) fn of_drift_at_once(claim: &NodeClaim, since: DateTime<Utc>, t: &Thresholds) -> Self {
        let drifted = claim.condition("Drifted").map(Condition::shown).unwrap_or_default();
        let object = format!("NodeClaim/{}", claim.name());
        let because = "Karpenter will replace a machine that it made minutes ago";
        let evidence = Evidence::new(object, r#"status.conditions[?(@.type=="Drifted")]"#, drifted, because);
        Self { symptom: Symptom::DriftsAtOnce, ..Self::new(Stage::Launch, since, t.launch, t, evidence) }
    }

    /// For machines that are going away anyway: they will not wait any longer.
    fn leaving(mut self) -> Self {
        self.proven = TimeDelta::zero();
        self.only_with_proof()
    }

    /// For states that no time heals.
    fn settled(mut self) -> Self {
        self.patience = TimeDelta::zero();
        self.proven = TimeDelta::zero();
        self
    }
}

/// The stage that a machine with a NodeClaim waits at; `None` for one that passed them all or is going away by design.
pub fn claim_wait(
    claim: &NodeClaim,
    nodes: &[&Node],
    changed: impl Fn(&Condition) -> Option<DateTime<Utc>>,
    t: &Thresholds,
) -> Option<Wait> {
    let created = claim.metadata.creation_timestamp?;
    if let Some(deleted) = claim.metadata.deletion_timestamp
        && !timed_out(claim, deleted)
        && !never_launched(claim)
    {
        return terminate_wait(claim, deleted, t.terminate / 2);
    }
    let name = || format!("NodeClaim/{}", claim.name());
    let field = |type_: &str| format!(r#"status.conditions[?(@.type=="{type_}")]"#);
    let shown = |type_: &str| claim.condition(type_).map_or_else(|| "absent".to_owned(), Condition::shown);

    if !claim.is_true("Launched") {
        let since = claim.condition("Launched").and_then(&changed).unwrap_or(created).max(created);
        let evidence = Evidence::new(
            name(),
            field("Launched"),
            shown("Launched"),
            "no instance has been launched for this NodeClaim",
        );
        let wait = Wait::new(Stage::Launch, since, t.launch, t, evidence);
        return Some(if claim.metadata.deletion_timestamp.is_some() { wait.leaving() } else { wait });
    }
    let launched = claim.true_since("Launched").unwrap_or(created);
    if !claim.is_true("Registered") {
        let registered = claim.condition("Registered");
        // Before 1.0 what has not come yet is False, and not Unknown.
        // Source: core pkg/controllers/nodeclaim/lifecycle/registration.go (v0.35.0).
        let is_refused = |c: &&Condition| c.is_false() && !matches!(c.reason.as_str(), "NodeNotFound" | "NotLaunched");
        if let Some(refused) = registered.filter(is_refused) {
            let since = refused.last_transition_time.unwrap_or(launched);
            let evidence = Evidence::new(
                name(),
                field("Registered"),
                refused.shown(),
                "Karpenter refused the Node, and does not look at it again",
            );
            return Some(Wait::new(Stage::Register, since, t.register, t, evidence).settled());
        }
        if let Some(node) = nodes.first() {
            let since = node.metadata.creation_timestamp.unwrap_or(launched).max(launched);
            let evidence = Evidence::new(
                name(),
                field("Registered"),
                shown("Registered"),
                format!("Node {} exists, but is not registered", node.name()),
            );
            return Some(Wait::new(Stage::Register, since, t.register, t, evidence));
        }
        let because = "the instance was launched, but no Node with its providerID has appeared";
        let patience = if boots_slowly(claim) { t.join * 2 } else { t.join };
        return Some(Wait::new(
            Stage::Join,
            launched,
            patience,
            t,
            Evidence::new(name(), field("Registered"), shown("Registered"), because),
        ));
    }
    if let Some(wait) = reboot::wait(claim, t) {
        return Some(wait);
    }
    if !claim.is_true("Initialized") {
        let registered = claim.true_since("Registered").unwrap_or(launched);
        let initialized = claim.condition("Initialized");
        let since = initialized.and_then(&changed).unwrap_or(registered).max(registered);
        let since = reboot::ended_at(claim).unwrap_or(since).max(since);
        let patience = match initialized.map(|c| c.reason.as_str()) {
            Some("ResourceNotRegistered" | "DRADriverPoolsNotPublished") => t.devices,
            _ => t.initialize,
        };
        let evidence = Evidence::new(
            name(),
            field("Initialized"),
            shown("Initialized"),
            "the Node is registered, but Karpenter does not call it usable",
        );
        return Some(Wait::new(Stage::Initialize, since, patience, t, evidence));
    }
    let initialized = claim.true_since("Initialized").unwrap_or(launched);
    // What is proven comes first: a Node without the NodePool's taints may also carry an agent's.
    nodes
        .iter()
        .find_map(|node| ready_wait(node, t))
        .or_else(|| taints_wait(claim, nodes.first()?, t))
        .or_else(|| agent_taint_wait(nodes.first()?, &claim.spec.taints, initialized, t))
        .or_else(|| network_wait(nodes.first()?, t))
        .or_else(|| pressure_wait(nodes.first()?, t))
        .or_else(|| hardware_wait(nodes.first()?, t))
        .or_else(|| cordon_wait(nodes.first()?, t.ready * 3, t))
}

/// The least that any machine is given at a stage before it counts as stuck.
pub fn least_patience(stage: Stage, t: &Thresholds) -> TimeDelta {
    match stage {
        Stage::Launch => t.launch,
        Stage::Join => t.join,
        Stage::Initialize => t.initialize.min(t.devices),
        // Those that Karpenter refused are stuck at once, and so is broken hardware.
        Stage::Register | Stage::Ready => TimeDelta::zero(),
        Stage::Terminate => TimeDelta::MAX,
    }
}

/// A registered machine that goes away by design, and has not gone for long. Draining takes as long as its pods and
/// their budgets want: worth a diagnosis only where something proves that no pod is waited for.
pub fn terminate_wait(claim: &NodeClaim, deleted: DateTime<Utc>, proven: TimeDelta) -> Option<Wait> {
    if !claim.is_true("Registered") {
        return None;
    }
    // Each step takes its own time.
    let steps =
        ["Drained", "VolumesDetached", "InstanceTerminating"].into_iter().filter_map(|step| claim.true_since(step));
    let since = steps.chain([deleted]).max()?;
    let because = "the NodeClaim was deleted, and Karpenter's finalizer still holds it";
    Some(leaving_wait(format!("NodeClaim/{}", claim.name()), deleted, since, proven, because))
}

/// A NodeClaim that was deleted before it had an instance, and has stayed: there is nothing that Karpenter would wait for.
/// Source: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/controller.go `finalize`.
pub fn unlaunched_leaving_wait(claim: &NodeClaim, now: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let deleted = claim.metadata.deletion_timestamp.filter(|_| never_launched(claim))?;
    let is_held = !claim.metadata.finalizers.is_empty() && now - deleted >= t.terminate / 2;
    let because = "it was deleted before it had an instance, and Karpenter's finalizer still holds it";
    let object = format!("NodeClaim/{}", claim.name());
    is_held.then(|| leaving_wait(object, deleted, deleted, t.terminate / 2, because))
}

/// Something deleted that a finalizer holds. Half of the time that a step may take is enough where it can never end.
fn leaving_wait(
    object: String,
    deleted: DateTime<Utc>,
    since: DateTime<Utc>,
    proven: TimeDelta,
    because: &'static str,
) -> Wait {
    let deleted = deleted.format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let evidence = Evidence::new(object, "metadata.deletionTimestamp", deleted, because);
    Wait { stage: Stage::Terminate, since, patience: TimeDelta::MAX, proven, evidence, symptom: Symptom::NotPassed }
}

/// A Node of Karpenter's whose NodeClaim is gone, and that was deleted and stays.
fn leaving_node_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    let deleted = node.metadata.deletion_timestamp?;
    node.metadata.label("karpenter.sh/nodepool")?;
    let because = "the Node was deleted, and a finalizer still holds it";
    let object = format!("Node/{}", node.name());
    let held = !node.metadata.finalizers.is_empty();
    held.then(|| leaving_wait(object, deleted, deleted, t.terminate / 2, because))
}

/// A node class that was deleted and stays. Machines that use it go in their own time; where none does, only AWS is
/// asked, and that takes seconds.
pub fn leaving_class_wait(class: &NodeClass, may_be_used: bool, t: &Thresholds) -> Option<Wait> {
    let deleted = class.metadata.deletion_timestamp.filter(|_| !class.metadata.finalizers.is_empty())?;
    let because = "the node class was deleted, and a finalizer still holds it";
    let object = format!("{}/{}", class.kind, class.name());
    let wait = leaving_wait(object, deleted, deleted, t.terminate / 2, because);
    Some(if may_be_used || !class.is_ec2() { wait } else { Wait { patience: t.terminate, ..wait } })
}

/// A Ready Node that is short of memory, disk or process ids: the kubelet evicts, and nothing new is scheduled there.
///
/// It comes and goes as the kubelet cleans up, so it is given twice the time.
fn pressure_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    if is_out_of_service(node) {
        return None;
    }
    let pressed = PRESSURES.iter().find_map(|type_| node.condition(type_).filter(|c| c.is_true()))?;
    let field = format!(r#"status.conditions[?(@.type=="{}")]"#, pressed.type_);
    let because =
        "nothing that does not tolerate the pressure taint is scheduled there, and the kubelet evicts what runs";
    let evidence = Evidence::new(format!("Node/{}", node.name()), field, pressed.shown(), because);
    let wait = Wait::new(Stage::Ready, pressed.last_transition_time?, t.ready * 2, t, evidence);
    Some(Wait { proven: wait.patience, ..wait })
}

/// A Ready Node whose network plugin calls its network unavailable: the control plane taints it for that.
///
/// A plugin that restarts says so for a moment.
/// Source: kubernetes v1.36.3 pkg/controller/nodelifecycle `nodeConditionToTaintKeyStatusMap`; calico v3.30
/// node/pkg/lifecycle/utils/utils.go `SetNodeNetworkUnavailableCondition`.
fn network_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    if is_out_of_service(node) {
        return None;
    }
    let condition = node.condition("NetworkUnavailable").filter(|c| c.is_true())?;
    let field = r#"status.conditions[?(@.type=="NetworkUnavailable")]"#;
    let because =
        "the Node is Ready, and nothing that does not tolerate the taint of this condition is scheduled there";
    let evidence = Evidence::new(format!("Node/{}", node.name()), field, condition.shown(), because);
    let wait = Wait::new(Stage::Ready, condition.last_transition_time?, t.ready, t, evidence);
    Some(Wait { symptom: Symptom::NetworkUnavailable, ..wait })
}

/// Whether two pods are alike.
pub type Kinship = fn(&Pod, &Pod) -> bool;

/// A Ready Node that cannot start the pods it is given, for long and still.
///
/// The kubelet tries again every few seconds and says so every time, or every five minutes once its events are
/// throttled (kubernetes v1.36.3 client-go tools/record/events_cache.go). A pod that waits for a warm address is served
/// within seconds.
pub fn refused_pods_wait<'e>(
    node: &Node,
    pod_events: impl Iterator<Item = &'e Event>,
    pods: impl Iterator<Item = &'e Pod>,
    starts_elsewhere: impl Fn(&Pod, Kinship) -> bool,
    now: DateTime<Utc>,
    t: &Thresholds,
) -> Option<Wait> {
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let (containers, refusals): (Vec<&Event>, Vec<&Event>) = pod_events
        .filter(|event| refuses_container(event) || refused_sandbox(event).is_some())
        .partition(|event| refuses_container(event));
    let waits = |newest: &Event, first: DateTime<Utc>, because: &'static str| {
        let object = format!("Event Pod/{}", newest.involved_object.name);
        let evidence = Evidence::new(object, "message", newest.said(), because);
        let wait = Wait::new(Stage::Ready, first, t.ready * 2, t, evidence);
        Wait { proven: wait.patience, symptom: Symptom::PodsRefused, ..wait }
    };
    let is_recent = |e: &&&Event| e.last_seen().is_some_and(|at| now - at <= STILL_REFUSED);
    let Some(newest) = refusals.iter().filter(is_recent).max_by_key(|e| e.last_seen()) else {
        if node.is_windows() {
            return None;
        }
        let recent: Vec<&Event> = containers.iter().filter(is_recent).copied().collect();
        let (newest, first) = containers_refused(&recent, pods, starts_elsewhere)?;
        return Some(waits(
            newest,
            first,
            "the Node is Ready, and its runtime makes no container of pods that run elsewhere",
        ));
    };
    let of_node = refusals.iter().any(|e| matches!(refused_sandbox(e), Some(Sandbox::Address | Sandbox::Image)));
    let (newest, first) = if of_node || node.is_windows() {
        (*newest, refusals.iter().filter_map(|e| e.first_timestamp.or(e.last_seen())).min()?)
    } else {
        refused_together(&refusals, pods, starts_elsewhere, now)?
    };
    let wait =
        waits(newest, first, "the Node is Ready, and its kubelet cannot start the pods that are scheduled there");
    Some(if of_node || !node.is_windows() { wait } else { wait.only_with_proof() })
}

/// A network or a sandbox may be refused to one pod for reasons of its own. It is the Node's affair where none that came
/// with it or later has started, and pods of two owners wait, or one of whose owner others run elsewhere.
fn refused_together<'e>(
    refusals: &[&'e Event],
    pods: impl Iterator<Item = &'e Pod>,
    starts_elsewhere: impl Fn(&Pod, Kinship) -> bool,
    now: DateTime<Utc>,
) -> Option<(&'e Event, DateTime<Utc>)> {
    // One in the network of the host needs no plugin.
    let of_network = refusals.iter().all(|e| refused_sandbox(e) == Some(Sandbox::Network));
    let of_pod = |pod: &Pod| {
        let own = refusals.iter().copied().filter(|e| e.names(&pod.metadata) && waits_for_sandbox(pod, e));
        own.filter(|e| e.last_seen().is_some_and(|at| now - at <= STILL_REFUSED)).max_by_key(|e| e.last_seen())
    };
    let (started, waiting): (Vec<&Pod>, Vec<&Pod>) = pods
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && !(of_network && pod.spec.host_network))
        .partition(|pod| (pod.has_started() || pod.is_ready()) && of_pod(pod).is_none());
    let waiting: Vec<(&Pod, &Event)> = waiting.into_iter().filter_map(|pod| Some((pod, of_pod(pod)?))).collect();
    // After a reboot each pod needs another sandbox: it comes anew when it has stopped.
    let anew = waiting.iter().any(|(pod, _)| pod.has_started());
    let came_at = |pod: &Pod| pod.stopped_at().filter(|_| anew).or(pod.metadata.creation_timestamp);
    let came = waiting.iter().filter_map(|(pod, _)| came_at(pod)).min()?;
    if started.iter().any(|pod| came_at(pod) >= Some(came)) {
        return None;
    }
    let (first, _) = waiting.first()?;
    let of_many = waiting.iter().any(|(pod, _)| pod.workload() != first.workload());
    if !of_many && !waiting.iter().any(|(pod, _)| starts_elsewhere(pod, Pod::is_same_workload)) {
        return None;
    }
    let since =
        waiting.iter().filter_map(|(pod, e)| e.first_timestamp.or(e.last_seen()).max(pod.stopped_at())).min()?;
    let (_, newest) = waiting.into_iter().max_by_key(|(_, event)| event.last_seen())?;
    Some((newest, since))
}

/// Whether a refused sandbox is one that the pod needs now: it has never had any, or has lost it, as all do when their
/// machine restarts.
pub fn waits_for_sandbox(pod: &Pod, refusal: &Event) -> bool {
    !pod.is_ready() && !pod.runs() && refusal.last_seen() > pod.stopped_at()
}

/// Whether the runtime could not make a container out of an image that is there.
/// Source: containerd v2.1 internal/cri/server/container_create.go; of a failure before that, such as the container's
/// spec, the pod's own text may be at fault.
pub fn refuses_container(event: &Event) -> bool {
    event.reason == "Failed" && event.message.contains("failed to create containerd container")
}

/// A container may be refused to one pod for what is in its text. It is the Node's affair where two pods or more are
/// refused theirs in the same way, none that came with them or later has started, and a pod of the same text runs
/// elsewhere.
fn containers_refused<'e>(
    refusals: &[&'e Event],
    pods: impl Iterator<Item = &'e Pod>,
    starts_elsewhere: impl Fn(&Pod, Kinship) -> bool,
) -> Option<(&'e Event, DateTime<Utc>)> {
    if refusals.is_empty() {
        return None;
    }
    let (started, waiting): (Vec<&Pod>, Vec<&Pod>) = pods
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .partition(|pod| pod.has_started() || pod.is_ready());
    let of_pod = |pod: &Pod| refusals.iter().copied().filter(|e| e.names(&pod.metadata)).max_by_key(|e| e.last_seen());
    let waiting: Vec<(&Pod, &str, &Event)> =
        waiting.into_iter().filter_map(|pod| Some((pod, pod.refused_container()?, of_pod(pod)?))).collect();
    let came = waiting.iter().filter_map(|(pod, ..)| pod.metadata.creation_timestamp).min()?;
    // Names of temporary mounts, snapshots and containers are others each time.
    let words = |said: &str| said.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    let (_, first, _) = waiting.first()?;
    let alike = waiting.len() >= 2 && waiting.iter().all(|(_, said, _)| words(said) == words(first));
    let any_starts = started.iter().any(|pod| pod.metadata.creation_timestamp >= Some(came));
    if !alike || any_starts || !waiting.iter().any(|(pod, ..)| starts_elsewhere(pod, Pod::is_same_text)) {
        return None;
    }
    let since = waiting.iter().filter_map(|(.., event)| event.first_timestamp.or(event.last_seen())).min()?;
    let (.., newest) = waiting.into_iter().max_by_key(|(.., event)| event.last_seen())?;
    Some((newest, since))
}

/// A registered machine that has no Node any more, though its NodeClaim lives on.
///
/// If the instance is gone as well, Karpenter deletes the NodeClaim within minutes. If a user deletes the Node,
/// Karpenter's finalizer on the Node deletes the NodeClaim. The remaining case is a Node whose removal bypassed both.
/// Sources: k8s.io/cloud-provider v0.36.3 controllers/nodelifecycle; core pkg/controllers/nodeclaim/garbagecollection,
/// every 2 min, and pkg/controllers/node/termination/controller.go `finalize` (v1.14.3).
pub fn vanished_wait<'e>(
    claim: &NodeClaim,
    node_events: impl Iterator<Item = &'e Event>,
    claim_events: impl Iterator<Item = &'e Event>,
    now: DateTime<Utc>,
    t: &Thresholds,
) -> Option<Wait> {
    if !claim.is_true("Registered") || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let registered = claim.true_since("Registered");
    // An earlier Node of the name may have been deleted too.
    let of_node: Vec<&Event> = node_events.filter(|e| e.last_seen() >= registered).collect();
    let told = |event: &Event, because| {
        Evidence::new(format!("Event/{}", event.metadata.name), "message", event.said(), because)
    };
    if let Some(deleting) = of_node.iter().find(|e| deletes_node(e)) {
        let evidence = told(deleting, "the cloud controller did not find the Node's instance, and deleted the Node");
        let wait = Wait::new(Stage::Ready, deleting.last_seen()?, t.ready, t, evidence);
        return Some(Wait { symptom: Symptom::NodeDeleted, ..wait });
    }
    let removed = of_node.iter().find(|e| e.reason == "RemovingNode");
    // Karpenter says so of every new machine too.
    let missed = claim_events.filter(|e| {
        misses_node(e)
            && e.last_seen().zip(registered).is_some_and(|(at, registered)| at - registered >= STATE_FOLLOWS)
            && e.last_seen().is_some_and(|at| now - at <= STILL_MISSED)
    });
    let missed: Vec<&Event> = missed.collect();
    // Karpenter counts on from what it said before the registration.
    let first = missed.iter().filter_map(|e| e.first_timestamp.or(e.last_seen())).min().max(registered);
    let since = removed.and_then(|e| e.last_seen()).max(first.filter(|_| !missed.is_empty()))?;
    let evidence = match (missed.iter().max_by_key(|e| e.last_seen()), removed) {
        (Some(missed), _) => told(missed, "Karpenter still has the machine, and finds no Node of it"),
        (None, Some(removed)) => told(removed, "the Node was deleted, and its NodeClaim was not"),
        (None, None) => return None,
    };
    let wait = Wait::new(Stage::Ready, since, t.ready, t, evidence);
    // Karpenter looks every two minutes for machines whose instance is gone.
    Some(Wait { proven: wait.patience, symptom: Symptom::NodeGone, ..wait })
}

/// How long after the registration Karpenter's own view of the cluster may lag.
const STATE_FOLLOWS: TimeDelta = TimeDelta::minutes(2);
/// Karpenter repeats it at most every two minutes, whenever it looks for what to disrupt.
/// Source: core pkg/events/recorder.go `defaultDedupeTimeout` (v1.14.3).
const STILL_MISSED: TimeDelta = TimeDelta::minutes(30);

/// Whether Karpenter says that a NodeClaim has no Node.
/// Source: core pkg/controllers/state/statenode.go `ValidateNodeDisruptable` (v1.0.5, v1.14.3).
pub fn misses_node(event: &Event) -> bool {
    event.reason == "DisruptionBlocked"
        && (event.message.contains("does not have an associated node")
            || event.message.contains("doesn't contain both a node and a nodeclaim"))
}

/// Whether the cloud controller says that it deletes a Node whose instance it does not find.
pub fn deletes_node(event: &Event) -> bool {
    event.reason == "DeletingNode" && event.message.contains("does not exist in the cloud provider")
}

/// How long after its last message a refusal still counts.
pub(crate) const STILL_REFUSED: TimeDelta = TimeDelta::minutes(10);

/// The thing that the kubelet lacks to start a pod's sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// An address.
    Address,
    /// The image of the pause container.
    Image,
    /// Whatever else the network plugin needs.
    Network,
    /// Whatever else the container runtime says.
    Runtime,
    /// A unit of systemd, without which no volume is mounted.
    Unit,
}

/// systemd, which mounts volumes for the kubelet, starts no unit any more.
/// Sources: systemd v219 src/run/run.c `start_transient_scope`; k8s.io/mount-utils v0.36.3 mount_linux.go `doMount`.
pub const NO_UNIT_STARTS: &str = "Failed to start transient scope unit: ";

/// The image is there, and what lays out its layers fails.
pub const UNPACKING_FAILS: &str = "error unpacking image";

/// Why the sandbox of a pod could not be made, where it is the Node's affair.
pub fn refused_sandbox(event: &Event) -> Option<Sandbox> {
    if event.reason == "FailedMount" && event.message.contains(NO_UNIT_STARTS) {
        return Some(Sandbox::Unit);
    }
    if event.reason != "FailedCreatePodSandBox" {
        return None;
    }
    if lacks_addresses(&event.message) {
        return Some(Sandbox::Address);
    }
    // containerd v2.1 internal/cri/server/podsandbox/sandbox_run.go; of Docker kubernetes v1.15.0
    // pkg/kubelet/dockershim/helpers.go `ensureSandboxImageExists`.
    if ["sandbox image", "desc = failed pulling image"].iter().any(|part| event.message.contains(part)) {
        return Some(Sandbox::Image);
    }
    // containerd v2.1 client/container_opts.go `WithNewSnapshot`; of a sandbox it is the pause image.
    if event.message.contains("failed to start sandbox") && event.message.contains(UNPACKING_FAILS) {
        return Some(Sandbox::Image);
    }
    // containerd v2.1 internal/cri/server/sandbox_run.go; of Docker kubernetes v1.23.0
    // pkg/kubelet/dockershim/network/plugins.go `SetUpPod`.
    let of_network = ["failed to setup network for sandbox", "networkPlugin cni failed to set up pod"];
    if of_network.iter().any(|part| event.message.contains(part)) {
        return Some(Sandbox::Network);
    }
    // A RuntimeClass is the choice of a pod.
    (!event.message.contains("no runtime for")).then_some(Sandbox::Runtime)
}

/// Whether a network plugin says that it has no address for a pod.
pub fn lacks_addresses(said: &str) -> bool {
    // amazon-vpc-cni-k8s v1.20.4 cmd/routed-eni-cni-plugin/cni.go `add`; cilium v1.17 pkg/ipam (`ErrFull`, of the
    // instance's own addresses `No more IPs available`, later `no IPs currently available on the node`, of several pools `cidrPool.allocateNext`);
    // containernetworking/plugins v1.7 host-local backend/allocator/allocator.go; calico v3.30 libcalico-go
    // lib/ipam/ipam_types.go `PartialFulfillmentError`.
    const NO_ADDRESS: [&str; 7] = [
        "failed to assign an IP address to container",
        "postIpamFailure range is full",
        "postIpamFailure No more IPs available",
        "no IPs currently available on the node",
        "all CIDR ranges are exhausted",
        "no IP addresses available in range set",
        "Assigned 0 out of 1 requested IPv4 addresses",
    ];
    NO_ADDRESS.iter().any(|text| said.contains(text))
}

/// Hardware that the EKS node monitoring agent calls broken on a Node in service.
///
/// Only AcceleratedHardwareReady counts. The agent reads kernel, network and runtime faults from logs and never clears
/// them, even long after the fault has passed (aws/eks-node-monitoring-agent#215). A device fault stays. If there are
/// two faults, versions before v1.6.0 reset its time with each report (#39), so its age proves nothing. `DCGMError` is
/// about the agent's own connection, and the agent does not clear it when the connection works again (#266), so alone
/// it does not make a Node unhealthy. The fabric manager may only be starting.
fn hardware_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    if is_out_of_service(node) {
        return None;
    }
    let broken = node.condition("AcceleratedHardwareReady").filter(|c| c.is_false())?;
    let field = r#"status.conditions[?(@.type=="AcceleratedHardwareReady")]"#;
    let because = "the node monitoring agent calls the accelerator broken";
    let evidence = Evidence::new(format!("Node/{}", node.name()), field, broken.shown(), because);
    let wait = Wait::new(Stage::Ready, broken.last_transition_time?, t.ready, t, evidence);
    let wait = Wait { symptom: Symptom::HardwareBroken, ..wait };
    Some(match broken.reason.as_str() {
        "DCGMError" => wait.only_with_proof(),
        reason if reason.contains("FabricManager") => wait,
        _ => wait.settled(),
    })
}

/// kubernetes v1.36.3 pkg/kubelet/nodestatus/setters.go.
pub const PRESSURES: [&str; 3] = ["DiskPressure", "MemoryPressure", "PIDPressure"];

/// A Ready Node that is called usable, and that a taint of some agent keeps empty: only its own taints are meant to
/// stay.
fn agent_taint_wait(node: &Node, own: &[Taint], initialized: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    if is_out_of_service(node) {
        return None;
    }
    let meant = |taint: &Taint| own.iter().any(|own| own.matches(taint));
    // The Node Readiness Controller may also guard Nodes in service: then its taint says what it is meant to say.
    let of_agent = |taint: &Taint| startup_taint::owner(taint).is_some_and(|owner| !owner.has_rules());
    let agents = |taint: &&Taint| of_agent(taint) || taint.key == UNREGISTERED_TAINT;
    let taint =
        node.spec.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule" && !meant(taint)).find(agents)?;
    // An agent that restarts may put its taint back for a while: count from when the list was last written, where that
    // is known.
    let written = cloud_controller::last_taint_writer(node).and_then(|w| w.time);
    let since = [Some(initialized), taint.time_added, written].into_iter().flatten().max().unwrap_or(initialized);
    let because = "the Node is Ready, and nothing that does not tolerate this taint is scheduled there";
    let evidence = Evidence::new(format!("Node/{}", node.name()), "spec.taints", taint.to_string(), because);
    Some(Wait::new(Stage::Ready, since, t.ready, t, evidence))
}

/// Windows prepares itself after the first boot, and bare metal takes minutes to come up at all.
/// Source: <https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-type-specifications.html> (`.metal`
/// sizes).
fn boots_slowly(claim: &NodeClaim) -> bool {
    let bare_metal = |type_: &str| type_.split_once('.').is_some_and(|(_, size)| size.starts_with("metal"));
    claim.fixed("kubernetes.io/os") == Some("windows")
        || claim.metadata.label("node.kubernetes.io/instance-type").is_some_and(bare_metal)
}

/// A Node in service without taints of its NodePool, which Karpenter was told not to add.
///
/// With the label, Karpenter trusts the kubelet to have registered them (core#2125, v1.5.0). Startup taints are meant
/// to go, so only the lasting ones tell.
fn taints_wait(claim: &NodeClaim, node: &Node, t: &Thresholds) -> Option<Wait> {
    let missing = missing_taints(claim, node);
    if missing.is_empty() || node.metadata.label(karpenter::DO_NOT_SYNC_TAINTS_LABEL) != Some("true") {
        return None;
    }
    let since = claim.true_since("Registered")?;
    let object = format!("Node/{}", node.name());
    let evidence = Evidence::new(
        object,
        "spec.taints",
        listed(&node.spec.taints),
        format!("the NodePool's taint {} is not among them", listed(&missing)),
    );
    Some(Wait::new(Stage::Register, since, t.register, t, evidence).only_with_proof())
}

/// The lasting taints of a claim that its Node does not carry.
pub fn missing_taints(claim: &NodeClaim, node: &Node) -> Vec<Taint> {
    claim.spec.taints.iter().filter(|t| !node.spec.taints.iter().any(|have| have.matches(t))).cloned().collect()
}

/// Taints in one line; `none` where there is none.
pub fn listed(taints: &[Taint]) -> String {
    if taints.is_empty() {
        "none".to_owned()
    } else {
        taints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// The stage that a Node without NodeClaim waits at: managed node groups, self-managed nodes, and Nodes that Karpenter
/// never matched.
pub fn node_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    let created = node.metadata.creation_timestamp?;
    if is_out_of_service(node) {
        // The lifecycle hook of an Auto Scaling group may hold an instance for as long as that.
        return leaving_node_wait(node, t).or_else(|| cordon_wait(node, t.terminate, t));
    }
    let name = || format!("Node/{}", node.name());
    if let Some(taint) = node.taint(UNREGISTERED_TAINT)
        && node.metadata.label("karpenter.sh/registered").is_none()
    {
        let because = "the Node waits for Karpenter, but no NodeClaim has its providerID";
        return Some(Wait::new(
            Stage::Register,
            created,
            t.initialize,
            t,
            Evidence::new(name(), "spec.taints", taint.to_string(), because),
        ));
    }
    let uninitialized = || {
        let taint = node.taint(UNINITIALIZED_TAINT)?;
        let because = "nothing is scheduled here until the cloud controller has initialized the Node";
        Some(Wait::new(
            Stage::Initialize,
            created,
            t.initialize,
            t,
            Evidence::new(name(), "spec.taints", taint.to_string(), because),
        ))
    };
    ready_wait(node, t)
        .or_else(uninitialized)
        .or_else(|| agent_taint_wait(node, &[], created, t))
        .or_else(|| network_wait(node, t))
        .or_else(|| pressure_wait(node, t))
        .or_else(|| hardware_wait(node, t))
}

/// A Node in service that is not Ready. One that somebody has taken out of service is not sick.
fn ready_wait(node: &Node, t: &Thresholds) -> Option<Wait> {
    let created = node.metadata.creation_timestamp?;
    if node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let ready = node.condition("Ready");
    let since = ready.and_then(|c| c.last_transition_time).unwrap_or(created);
    let observed = ready.map_or_else(|| "absent".to_owned(), Condition::shown);
    let evidence = Evidence::new(
        format!("Node/{}", node.name()),
        r#"status.conditions[?(@.type=="Ready")]"#,
        observed,
        "the Node is not Ready",
    );
    Some(Wait::new(Stage::Ready, since, t.ready, t, evidence))
}

/// A Ready Node that a controller cordoned for a while, and that it has left so. Whoever else cordons a Node means it.
///
/// A rebalance recommendation announces nothing for certain, and nobody undoes that cordon
/// (aws-node-termination-handler#321). A reboot, a removal or a new driver takes its time.
fn cordon_wait(node: &Node, after_warning: TimeDelta, t: &Thresholds) -> Option<Wait> {
    if !node.is_ready() || is_leaving(node) {
        return None;
    }
    let cordon = cordons::cordon(node)?;
    let (patience, because) = match cordon.by {
        Cordoner::TerminationHandler => (
            after_warning,
            "the Node is Ready, and nothing is scheduled there: its cordon was for an interruption that did not come",
        ),
        _ => (t.terminate, "the Node is Ready, and nothing is scheduled there: who cordoned it left it so"),
    };
    let evidence = Evidence::new(format!("Node/{}", node.name()), cordon.field, cordon.says, because);
    let (stage, symptom) = (Stage::Ready, Symptom::Cordoned);
    let wait = Wait { stage, since: cordon.since, patience, proven: patience, evidence, symptom };
    Some(wait.only_with_proof())
}

/// A machine of Karpenter's whose instance was stopped, as the cloud controller says: nobody starts it again, and it is
/// replaced only where Karpenter hears of it, by its queue or by the repair of Nodes.
/// Sources: k8s.io/cloud-provider v0.36.3 controllers/nodelifecycle `MonitorNodes`; karpenter-provider-aws v1.14.1
/// pkg/controllers/interruption/messages/statechange.
pub(super) fn stopped_wait(claim: &NodeClaim, node: &Node, t: &Thresholds) -> Option<Wait> {
    let deleted = claim.metadata.deletion_timestamp.or(node.metadata.deletion_timestamp);
    let ready = node.condition("Ready").filter(|ready| !ready.is_true() && deleted.is_none())?;
    let taint = node.taint(left_taint::SHUT_DOWN)?;
    let because = "the cloud controller sets it where the instance is stopped";
    let evidence = Evidence::new(format!("Node/{}", node.name()), "spec.taints", taint.to_string(), because);
    let wait = Wait::new(Stage::Ready, ready.last_transition_time?, t.terminate, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::InstanceStopped, ..wait }.only_with_proof())
}

/// Deleted, stopped, cordoned, rebooted by Karpenter or about to be removed. A cordon is a decision too: node group upgrades and termination
/// handlers begin with one, and `KubeNodeNotReady` of kubernetes-mixin leaves cordoned Nodes out as well.
pub(super) fn is_out_of_service(node: &Node) -> bool {
    node.spec.unschedulable || node.taint(REBOOTING_TAINT).is_some() || is_leaving(node)
}

pub(super) fn is_leaving(node: &Node) -> bool {
    // cluster-autoscaler does not cordon by default.
    const LEAVING_TAINTS: [&str; 2] = [left_taint::SHUT_DOWN, left_taint::TO_BE_DELETED];
    // Graceful shutdown. kubernetes v1.36.3 pkg/kubelet/nodeshutdown.
    let shutting_down = |c: &Condition| c.is_false() && c.message.contains("node is shutting down");
    node.metadata.deletion_timestamp.is_some()
        || LEAVING_TAINTS.iter().chain(&DISRUPTED_TAINTS).any(|key| node.taint(key).is_some())
        || node.condition("Ready").is_some_and(shutting_down)
}

/// When Karpenter will delete the machine, or would have.
pub fn terminates_at(claim: &NodeClaim, karpenter: Option<&karpenter::Karpenter>) -> Option<DateTime<Utc>> {
    let created = claim.metadata.creation_timestamp?;
    let since = |type_: &str| claim.condition(type_).and_then(|c| c.last_transition_time).unwrap_or(created);
    // The timeout came with Machines: core pkg/controllers/machine/lifecycle/liveness.go (v0.28.0).
    if claim.is_true("Registered") || claim.is_node() {
        None
    } else if !claim.is_true("Launched") && karpenter.is_some_and(karpenter::Karpenter::has_launch_timeout) {
        since("Launched").checked_add_signed(karpenter::LAUNCH_TIMEOUT)
    } else {
        // core liveness.go counts from the last transition of Registered, which starts as the claim's creation.
        since("Registered").checked_add_signed(karpenter::REGISTRATION_TIMEOUT)
    }
}

/// Whether the deletion at `deleted` is Karpenter's liveness timeout: it leaves no event, only arithmetic.
pub fn timed_out(claim: &NodeClaim, deleted: DateTime<Utc>) -> bool {
    let Some(created) = claim.metadata.creation_timestamp else { return false };
    if claim.is_true("Registered") || claim.is_node() {
        return false;
    }
    let since = |type_: &str| claim.condition(type_).and_then(|c| c.last_transition_time).unwrap_or(created);
    let (began, timeout) = if claim.is_true("Launched") {
        (since("Registered"), karpenter::REGISTRATION_TIMEOUT)
    } else {
        (since("Launched"), karpenter::LAUNCH_TIMEOUT)
    };
    deleted - began >= timeout
}

/// How a claim that is deleted at this time ends.
pub fn outcome(claim: &NodeClaim, deleted: DateTime<Utc>) -> Outcome {
    if timed_out(claim, deleted) { Outcome::Terminated } else { Outcome::Deleted }
}

/// Deleted before any instance existed: Karpenter gives up at once on lack of capacity and on a node class that is not
/// ready.
pub fn never_launched(claim: &NodeClaim) -> bool {
    !claim.is_true("Launched") && claim.status.provider_id.is_empty()
}

/// A NodePool that cannot launch: every recent claim vanished for lack of capacity, or the pool itself says why it is
/// not ready.
///
/// A pool whose class is not ready gets no diagnosis of its own: the class has it.
pub fn pool_wait<'a>(
    pool: &NodePool,
    class: Option<&NodeClass>,
    claim_events: impl Iterator<Item = &'a Event>,
    claims: impl Iterator<Item = &'a NodeClaim>,
    unplaced: impl Iterator<Item = Unplaced<'a>>,
    now: DateTime<Utc>,
    t: &Thresholds,
) -> Option<Wait> {
    let object = format!("NodePool/{}", pool.name());
    if let Some(condition) =
        ["ValidationSucceeded", "NodeClassReady"].into_iter().filter_map(|type_| pool.condition(type_)).find(|c| {
            c.is_false()
                && matches!(
                    c.reason.as_str(),
                    "NodePoolValidationFailed" | "NodeClassNotFound" | "NodeClassTerminating"
                )
        })
    {
        let since = condition.last_transition_time?;
        let field = format!(r#"status.conditions[?(@.type=="{}")]"#, condition.type_);
        let wait = Wait::new(
            Stage::Launch,
            since,
            t.launch,
            t,
            Evidence::new(object, field, condition.shown(), "Karpenter launches nothing for this NodePool"),
        );
        return Some(wait);
    }
    if let Some(wait) = class.and_then(|class| architecture_wait(pool, class, t)) {
        return Some(wait);
    }
    let claim_events: Vec<&Event> = claim_events.collect();
    let claims: Vec<&NodeClaim> = claims.collect();
    let died = died_at_start(&claim_events, claims.iter().copied());
    if let Some(wait) = dying_wait(&died, now, STILL_ASKED_FOR, t) {
        return Some(wait);
    }
    capacity_wait(claim_events, &claims, now, t)
        .or_else(|| unplaced_wait(unplaced.filter(|u| u.waits(now)), &claims, t))
}

/// While pods wait, Karpenter tries again as soon as a refused offering leaves its cache. If it is silent for much
/// longer, another NodePool has taken the pods, or they are gone.
/// Source: karpenter-provider-aws v1.14.1 pkg/cache/cache.go `UnavailableOfferingsTTL` (3 minutes).
pub const STILL_ASKED_FOR: TimeDelta = TimeDelta::minutes(10);

/// A NodePool for which EC2 has no capacity.
fn capacity_wait(claim_events: Vec<&Event>, claims: &[&NodeClaim], now: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let refused = claim_events.into_iter().filter(|e| e.reason == "InsufficientCapacityError");
    let mut refused: Vec<&Event> = refused.filter(|e| e.last_seen().is_some()).collect();
    refused.sort_by_key(|e| std::cmp::Reverse(e.last_seen()));
    // One series, without a silence in it.
    let mut next = now;
    let follows = |e: &&Event| {
        let at = e.last_seen().unwrap_or(next);
        std::mem::replace(&mut next, at) - at <= STILL_ASKED_FOR
    };
    let refusals: Vec<&Event> = refused.into_iter().take_while(follows).collect();
    let first = refusals.iter().filter_map(|e| e.last_seen()).min()?;
    // A claim that came later is alive, and has its own diagnosis where it needs one: then the pool is not stuck.
    let answered = claims.iter().any(|c| {
        c.metadata.creation_timestamp.is_some_and(|at| at >= first)
            || refusals.iter().any(|e| e.involved_object.name == c.name())
    });
    if answered || refusals.iter().map(|e| e.times()).sum::<u32>() < 2 {
        return None;
    }
    let newest = refusals.iter().max_by_key(|e| e.last_seen())?;
    let evidence = Evidence::new(
        format!("Event {}/{}", newest.involved_object.kind, newest.involved_object.name),
        "message",
        newest.said(),
        "Karpenter deleted the NodeClaim at once; only its event is left",
    );
    Some(Wait::new(Stage::Launch, first, t.launch, t, evidence).only_with_proof())
}

/// A NodePool that pods wait for, and that Karpenter says it can launch nothing for.
fn unplaced_wait<'a>(
    unplaced: impl Iterator<Item = Unplaced<'a>>,
    claims: &[&NodeClaim],
    t: &Thresholds,
) -> Option<Wait> {
    let unplaced: Vec<Unplaced> = unplaced.collect();
    // Not the newest: that is another pod's every few minutes.
    let told = unplaced.first()?.event;
    // A machine that came since may be for them.
    let newest = unplaced.iter().filter_map(|u| u.event.last_seen()).max();
    if claims.iter().any(|c| c.metadata.creation_timestamp > newest) {
        return None;
    }
    let evidence = Evidence::new(
        format!("Event Pod/{}", told.involved_object.name),
        "message",
        told.said(),
        "the pod waits, and Karpenter launches nothing for it",
    );
    let since = unplaced.iter().filter_map(Unplaced::since).min()?;
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// A NodePool that a pod could have a machine of, while Karpenter does not run.
pub fn unserved_wait(stopped: &karpenter::Stopped, pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let since = stopped.since.max(pod.metadata.creation_timestamp)?;
    let because = "no Node has room for the pod, and only Karpenter makes another";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::NobodyLaunches, ..wait })
}

/// A NodePool that a pod could have a machine of, while every NodeClaim is refused.
pub fn refused_claims_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and no NodeClaim can be made for it";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    Some(Wait { symptom: Symptom::ClaimsRefused, ..wait })
}

/// A NodePool that a pod could have a machine of, did it not ask for a label that Karpenter leaves it alone for.
pub fn ignored_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and Karpenter makes none for it";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    Some(Wait { symptom: Symptom::PodsIgnored, ..wait })
}

/// A NodePool of reserved capacity that a pod could have a machine of, while Karpenter says nothing of the pod.
pub fn deferred_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and Karpenter neither makes a machine for it nor says why";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    // What Karpenter has to say of a pod, it says every five minutes.
    let patience = t.launch * 5;
    Some(Wait { symptom: Symptom::PodsDeferred, patience, proven: patience, ..wait })
}

/// A NodePool whose machines come out too small for the pod that they are made for.
pub fn outgrown_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    pod_wait(pod, since, "no Node has room for the pod, and each machine that Karpenter makes for it is too small", t)
}

/// A NodePool whose machines are removed before the pod gets there that they are made for.
pub fn emptied_early_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has taken the pod, and each machine that Karpenter makes for it is removed as empty";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::EmptiedEarly, ..wait })
}

/// A NodePool whose machines all have the port taken that the pod asks for.
pub fn port_held_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has its port free, and on each machine that Karpenter makes for it the port is taken";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::PortHeld, ..wait })
}

/// A NodePool that a pod could have a machine of, and that is refused since this time.
pub fn refused_pool_wait(pod: &Pod, refused: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and of this NodePool there is no new one";
    pod_wait(pod, refused.max(pod.metadata.creation_timestamp?), because, t)
}

/// A NodePool that a pod could have a machine of, while Karpenter gets through no round since this time.
pub fn failing_round_wait(pod: &Pod, first: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and no NodeClaim has come since";
    let wait = pod_wait(pod, first.max(pod.metadata.creation_timestamp?), because, t)?;
    // Its rounds are seconds apart, and an API server that is slow for a while fails a few of them.
    Some(Wait { symptom: Symptom::RoundsFail, patience: t.launch * 2, proven: t.launch, ..wait })
}

/// A pod that waits for a machine, and that none is made for.
fn pod_wait(pod: &Pod, since: DateTime<Utc>, because: &'static str, t: &Thresholds) -> Option<Wait> {
    let said = pod.unscheduled()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let object = format!("Pod/{namespace}/{}", pod.metadata.name);
    let evidence =
        Evidence::new(object, r#"status.conditions[?(@.type=="PodScheduled")]"#, "False Unschedulable", because)
            .figures(said);
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// A NodePool that is Karpenter's by kind, and that it leaves alone.
pub fn inert_wait(pool: &NodePool, why: Inert, t: &Thresholds) -> Option<Wait> {
    let object = format!("NodePool/{}", pool.name());
    let evidence = match why {
        Inert::StaticCapacityOff => {
            let replicas = pool.spec.replicas.unwrap_or_default().to_string();
            Evidence::new(object, "spec.replicas", replicas, "and there is no NodeClaim of it")
        }
        Inert::ClassNotServed | Inert::AutoModeOff => {
            Evidence::new(object, "status.conditions", "none", "nobody has looked at it since it was made")
        }
    };
    let wait = Wait::new(Stage::Launch, pool.metadata.creation_timestamp?, t.launch, t, evidence);
    Some(Wait { symptom: Symptom::Inert(why), ..wait.only_with_proof() })
}

/// A NodePool for an architecture that no image of its node class runs on.
fn architecture_wait(pool: &NodePool, class: &NodeClass, t: &Thresholds) -> Option<Wait> {
    let (wanted, have) = (pool.architectures(), class.architectures()?);
    if wanted.is_empty() || wanted.iter().any(|arch| have.contains(arch.as_str())) {
        return None;
    }
    let resolved = ["AMIsReady", "Ready"].into_iter().filter_map(|type_| class.condition(type_)?.last_transition_time);
    let since = resolved.chain(pool.metadata.creation_timestamp).max()?;
    let because = "Karpenter leaves out every instance type that no image of the class runs on, and none is left";
    let evidence = Evidence::new(
        format!("NodePool/{}", pool.name()),
        "spec.template.spec.requirements",
        wanted.join(", "),
        because,
    );
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// The NodeClaims whose instance EC2 ended within this time of its launch, without anybody having asked for that, since
/// a machine of the NodePool last joined.
///
/// Karpenter writes `TerminatingOnInterruption` only for a NodeClaim that is not being deleted already, and nothing else
/// ends one that is not registered before its timeout: neither consolidation nor garbage collection.
/// Sources: karpenter-provider-aws v1.14.1 pkg/controllers/interruption/utils.go `deleteNodeClaim`; core
/// pkg/controllers/nodeclaim/garbagecollection/controller.go (v1.14.3).
pub fn died_at_start<'a>(claim_events: &[&'a Event], claims: impl Iterator<Item = &'a NodeClaim>) -> Vec<&'a Event> {
    const AT_START: TimeDelta = TimeDelta::minutes(3);
    // The events of one claim stand together: they are filed by its name.
    let died = |events: &[&'a Event]| {
        let find = |reason: &str| events.iter().copied().find(|e| e.reason == reason);
        if find("SpotInterrupted").or(find("Registered")).is_some() {
            return None;
        }
        let (launched, ended) = (find("Launched")?.last_seen()?, find("TerminatingOnInterruption")?);
        find("InstanceTerminating")?;
        (ended.last_seen()? - launched <= AT_START).then_some(ended)
    };
    let told = claim_events.iter().filter(|e| e.reason == "Registered").filter_map(|e| e.last_seen());
    let joined = told.chain(claims.filter_map(|c| c.true_since("Registered"))).max();
    claim_events
        .chunk_by(|a, b| a.involved_object.name == b.involved_object.name)
        .filter_map(died)
        .filter(|ended| joined.is_none_or(|joined| ended.last_seen() > Some(joined)))
        .collect()
}

/// Instance after instance ends before it can join: one wait, from the first of them on, however soon the next one
/// follows.
fn dying_wait(died: &[&Event], now: DateTime<Utc>, still: TimeDelta, t: &Thresholds) -> Option<Wait> {
    let newest = died.iter().max_by_key(|e| e.last_seen()).filter(|_| died.len() >= 2)?;
    newest.last_seen().filter(|last| now - *last <= still)?;
    let first = died.iter().filter_map(|e| e.last_seen()).min()?;
    let evidence = Evidence::new(
        format!("Event NodeClaim/{}", newest.involved_object.name),
        "message",
        newest.said(),
        "EC2 ended the instance; nobody had deleted the NodeClaim",
    );
    Some(Wait::new(Stage::Launch, first, t.launch, t, evidence))
}

/// A node class that is not Ready.
pub fn class_wait(class: &NodeClass, t: &Thresholds) -> Option<Wait> {
    if class.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ready = class.condition("Ready").filter(|c| !c.is_true())?;
    let since = ready.last_transition_time.or(class.metadata.creation_timestamp)?;
    let object = format!("{}/{}", class.kind, class.name());
    let evidence = Evidence::new(
        object,
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "Karpenter launches nothing from a node class that is not Ready",
    );
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence))
}

/// A node class whose instance profile Karpenter has not made since this time.
pub fn profileless_wait(class: &NodeClass, since: DateTime<Utc>, t: &Thresholds) -> Wait {
    let object = format!("{}/{}", class.kind, class.name());
    let because = "Karpenter launches nothing from a node class without an instance profile";
    let evidence = Evidence::new(object, "status.instanceProfile", "none", because);
    Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof()
}

/// The wait of an instance that is known only from its log: an error still stops it, or it has not registered for too
/// long.
pub fn logged_wait(log: &MachineLog, now: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let journey = &log.journey;
    let since = journey.begins.unwrap_or(now);
    let until = journey.ends.unwrap_or(now);
    let came_to = journey.came_to();
    let root = journey.open().first().copied();
    let stage = match (came_to, root.map(|fact| fact.trouble)) {
        (Some((Phase::Gone, _)), _) => return None,
        // It speaks of nothing but Nodes.
        (_, Some(Trouble::CloudControllerFails)) => Stage::Initialize,
        (Some((Phase::Registered | Phase::Ready, _)), _) => Stage::Ready,
        // What runs in a pod runs on a machine that has joined.
        _ if root.is_some_and(|fact| runs_in_pods(&fact.program)) => Stage::Ready,
        _ => Stage::Join,
    };
    // Of a Node that is there a complaint or two may be of a pod that only just came.
    let is_stopped = root.is_some_and(|fact| stage != Stage::Ready || fact.ends || fact.lasts());
    let is_late = stage == Stage::Join && until.signed_duration_since(since) >= t.join;
    let evidence = match came_to {
        Some((phase, milestone)) => {
            let LogLine { file, line, text, .. } = &milestone.last;
            Evidence::new(
                file.clone(),
                format!("line {line}"),
                text.clone(),
                format!("the last step of the machine: {}", phase.in_words()),
            )
        }
        None => Evidence::new(
            journey.files.keys().next().cloned().unwrap_or_default(),
            "lines",
            journey.lines.to_string(),
            "none of them says that the machine came any further than its boot",
        ),
    };
    let patience = if is_late { t.join } else { TimeDelta::zero() };
    (is_stopped || is_late).then(|| Wait::new(stage, since, patience, t, evidence).settled())
}
