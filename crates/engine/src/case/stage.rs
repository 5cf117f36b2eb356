//! The stages of a machine's life, and whether it waits at one for too long.
//!
//! A rule only ever explains a machine that is stuck here. A machine that passes its stages in time has no diagnosis,
//! whatever conditions, taints or noisy events it carries.

use super::judging::Judging;
use super::out_of_service::{is_leaving, is_out_of_service};
use super::taints::{listed, missing_taints};
use super::timeout::{never_launched, timed_out};
use crate::api::{Evidence, Stage, Text};
use crate::case::left_taint;
use crate::case::reboot;
use crate::objects::{Condition, Event, MachineLog, Node, NodeClaim, NodeClass, Taint};
use crate::upstream::cloud_controller;
use crate::upstream::cordons::{self, Cordoner};
use crate::upstream::karpenter::{self, UNINITIALIZED_TAINT, UNREGISTERED_TAINT};
use crate::upstream::node_events::{deletes_node, misses_node};
use crate::upstream::startup_taint;
use chrono::{DateTime, TimeDelta, Utc};
use logs::fact::{LogLine, Phase, Trouble};
use logs::table::runs_in_pods;

pub use super::thresholds::Thresholds;
pub use super::wait::{Inert, Symptom, Wait};

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
    if !claim.is_true("Launched") {
        let since = claim.condition("Launched").and_then(&changed).unwrap_or(created).max(created);
        let because = "no instance has been launched for this NodeClaim";
        let wait = Wait::new(Stage::Launch, since, t.launch, t, condition_of_claim(claim, "Launched", because));
        return Some(if claim.metadata.deletion_timestamp.is_some() { wait.leaving() } else { wait });
    }
    let launched = claim.true_since("Launched").unwrap_or(created);
    if !claim.is_true("Registered") {
        return Some(unregistered_wait(claim, nodes.first().copied(), launched, t));
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
        let because = "the Node is registered, but Karpenter does not call it usable";
        let evidence = condition_of_claim(claim, "Initialized", because);
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

/// The evidence that a NodeClaim waits at a stage: its condition of this type.
fn condition_of_claim(claim: &NodeClaim, type_: &str, because: impl Into<Text>) -> Evidence {
    let shown = claim.condition(type_).map_or_else(|| "absent".to_owned(), Condition::shown);
    let field = format!(r#"status.conditions[?(@.type=="{type_}")]"#);
    Evidence::new(format!("NodeClaim/{}", claim.name()), field, shown, because)
}

/// The wait of a launched machine that Karpenter has not registered: for its Node, or for Karpenter.
fn unregistered_wait(claim: &NodeClaim, node: Option<&Node>, launched: DateTime<Utc>, t: &Thresholds) -> Wait {
    // Before 1.0 what has not come yet is False, and not Unknown.
    // Source: core pkg/controllers/nodeclaim/lifecycle/registration.go (v0.35.0).
    let is_refused = |c: &&Condition| c.is_false() && !matches!(c.reason.as_str(), "NodeNotFound" | "NotLaunched");
    if let Some(refused) = claim.condition("Registered").filter(is_refused) {
        let since = refused.last_transition_time.unwrap_or(launched);
        let because = "Karpenter refused the Node, and does not look at it again";
        let evidence = condition_of_claim(claim, "Registered", because);
        return Wait::new(Stage::Register, since, t.register, t, evidence).settled();
    }
    if let Some(node) = node {
        let since = node.metadata.creation_timestamp.unwrap_or(launched).max(launched);
        let because = format!("Node {} exists, but is not registered", node.name());
        return Wait::new(Stage::Register, since, t.register, t, condition_of_claim(claim, "Registered", because));
    }
    let because = "the instance was launched, but no Node with its providerID has appeared";
    let patience = if boots_slowly(claim) { t.join * 2 } else { t.join };
    Wait::new(Stage::Join, launched, patience, t, condition_of_claim(claim, "Registered", because))
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

/// A NodeClaim that was deleted before it had an instance, and has stayed: there is nothing that Karpenter would wait
/// for. Source: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/controller.go `finalize`.
pub fn unlaunched_leaving_wait(judging: Judging, claim: &NodeClaim) -> Option<Wait> {
    let Judging { now, thresholds: t, .. } = judging;
    let deleted = claim.metadata.deletion_timestamp?;
    if !never_launched(claim) {
        return None;
    }
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
    let deleted = class.metadata.deletion_timestamp?;
    if class.metadata.finalizers.is_empty() {
        return None;
    }
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

/// A registered machine that has no Node any more, though its NodeClaim lives on.
///
/// If the instance is gone as well, Karpenter deletes the NodeClaim within minutes. If a user deletes the Node,
/// Karpenter's finalizer on the Node deletes the NodeClaim. The remaining case is a Node whose removal bypassed both.
/// Sources: k8s.io/cloud-provider v0.36.3 controllers/nodelifecycle; core pkg/controllers/nodeclaim/garbagecollection,
/// every 2 min, and pkg/controllers/node/termination/controller.go `finalize` (v1.14.3).
pub fn vanished_wait(judging: Judging, claim: &NodeClaim) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !claim.is_true("Registered") || claim.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let registered = claim.true_since("Registered");
    // An earlier Node of the name may have been deleted too.
    let of_node: Vec<&Event> =
        cluster.events("Node", &claim.status.node_name).filter(|e| e.last_seen() >= registered).collect();
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
    let missed = cluster.events("NodeClaim", claim.name()).filter(|e| {
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
    let taint = node.spec.taints.iter().filter(|taint| taint.keeps_pods_off() && !meant(taint)).find(agents)?;
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
        _ => (
            t.terminate,
            "the Node is Ready, but cordoned: a reboot, a removal or a new driver takes its time, and lifts the cordon \
             when it is done",
        ),
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
    // The repair of Nodes waits 30 minutes. Source: karpenter-provider-aws v1.14.1 pkg/cloudprovider/cloudprovider.go
    // `RepairPolicies`.
    let wait = Wait::new(Stage::Ready, ready.last_transition_time?, t.terminate / 2, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::InstanceStopped, ..wait }.only_with_proof())
}

/// The wait of an instance that is known only from its log: an error still stops it, or it has not registered for too
/// long.
pub fn logged_wait(judging: Judging, log: &MachineLog) -> Option<Wait> {
    let Judging { now, thresholds: t, .. } = judging;
    let journey = &log.journey;
    let since = journey.begins.unwrap_or(now);
    let until = journey.ends.unwrap_or(now);
    let came_to = journey.came_to();
    // Without its Node it is unknown whether the kubelet stopped for good, with the machine.
    let root = journey.open().into_iter().find(|fact| fact.trouble != Trouble::KubeletStopped);
    let stage = match (came_to, root.map(|fact| fact.trouble)) {
        (Some((Phase::Gone, _)), _) => return None,
        // It speaks of nothing but Nodes.
        (_, Some(Trouble::CloudControllerFails)) => Stage::Initialize,
        (Some((Phase::Registered | Phase::Ready, _)), _) => Stage::Ready,
        // What runs in a pod runs on a machine that has joined.
        _ if root.is_some_and(|fact| runs_in_pods(&fact.program)) => Stage::Ready,
        (_, None) if journey.facts.iter().any(|fact| runs_in_pods(&fact.program)) => Stage::Ready,
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
