//! The guards before a taint is removed: each is one question about the scene, and one refusal.

use super::breaker::RemovalTally;
use super::doubts::Doubts;
use super::{Limits, OptIn, REMOVING, exact_taint, remediated, stamp};
use crate::api::{Confidence, NodeDiagnosis, PAUSE_ANNOTATION};
use crate::objects::input::Input;
use crate::objects::watched::Watched;
use crate::objects::{Condition, Node, NodeClaim, NodePool};
use crate::upstream::cloud_controller;
use crate::upstream::karpenter::{DISRUPTED_TAINTS, REBOOTING_TAINT, UNINITIALIZED_TAINT};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use std::net::IpAddr;

/// The kubelet reports every 5 minutes, with up to half of that added at random. Two missed reports are no coincidence.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `calculateDelay`, `nodeStatusReportFrequency`.
const HEARTBEAT_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// Labels that the scheduler, the volume binder and kube-proxy read. The cloud controller and Karpenter set them.
const LABELS: [&str; 3] =
    ["topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"];

/// k8s.io/cloud-provider v0.36.3 api/well_known_taints.go.
const SHUT_DOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Taint keys of other tools that drain a Node before they remove it. A key that ends in `/` is a prefix.
const REMOVED_TAINTS: [&str; 2] = [
    // cluster-autoscaler utils/taints/taints.go.
    "ToBeDeletedByClusterAutoscaler",
    // aws-node-termination-handler pkg/node/node.go.
    "aws-node-termination-handler/",
];

/// The input of the guards.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub now: DateTime<Utc>,
    pub limits: &'a Limits,
    pub opt_in: OptIn,
    pub diagnosis: &'a NodeDiagnosis,
    pub node: &'a Node,
    pub claim: Option<&'a NodeClaim>,
    /// The NodePool that the Node names, if it exists.
    pub pool: Option<&'a NodePool>,
    pub tally: &'a RemovalTally,
    pub doubts: &'a Doubts,
}

/// One precondition.
#[derive(Debug)]
pub struct Guard {
    /// The reason of its refusal: in the condition, the Event, the metric and the log.
    pub reason: &'static str,
    /// Its requirement.
    pub demands: &'static str,
    /// The opt-in that it applies to. `None` means both.
    pub only: Option<OptIn>,
    /// What it reads. While one of these lists is not current, nothing is removed.
    pub reads: &'static [Watched],
    check: Check,
}

type Check = fn(&Scene) -> Result<(), String>;

/// A guard that said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    pub because: String,
}

/// The reason of the refusal if a guard reads a list that is not current.
pub const NOT_CURRENT: &str = "InputNotCurrent";

/// The lists that guards read.
const NODE: &[Watched] = &[Watched::Input(Input::Nodes)];
const CLAIM: &[Watched] = &[Watched::Input(Input::Nodes), Watched::Input(Input::NodeClaims)];
const POOL: &[Watched] = &[Watched::Input(Input::Nodes), Watched::Input(Input::NodePools)];
const SAID: &[Watched] = &[Watched::Input(Input::Nodes), Watched::Diagnoses];

/// All guards in the order of evaluation: first whether the lists that the others read are current, then what can veto
/// everything, then the verdict, then the Node, then removals elsewhere.
pub const ALL: &[Guard] = &[
    both(
        NOT_CURRENT,
        "every list that a guard reads is current: Nodes, NodeClaims, NodePools and NodeDiagnoses",
        &[],
        current,
    ),
    both("ClockInDoubt", "the API server's answers agree about the time", &[], clock_is_known),
    both(
        "Paused",
        "neither the Node nor its NodePool has the annotation nodewhy.dev/pause-remediation",
        POOL,
        not_paused,
    ),
    both("NodePoolUnknown", "the NodePool that could pause it can be read", POOL, pool_is_known),
    both("NotProven", "the verdict is Certain", CLAIM, proven),
    stale(
        "NoFingerprint",
        "the Node has a label that the cloud controller sets in the update that removes the taint, and managedFields \
         say that it did",
        NODE,
        fingerprinted,
    ),
    uninitialized(
        "Fingerprint",
        "the Node has no label and no address that the cloud controller sets",
        NODE,
        not_fingerprinted,
    ),
    both(
        "UnexpectedTaint",
        "the taint is there once, as the kubelet sets it: value true, effect NoSchedule",
        NODE,
        expected_taint,
    ),
    both("NoProviderID", "spec.providerID is set", NODE, provider_id),
    both(
        "NotRegistered",
        "Karpenter vouches for the node: a NodeClaim with the same providerID is Registered, and the Node has the \
         label karpenter.sh/registered",
        CLAIM,
        registered,
    ),
    both("LabelsMissing", "the Node has labels for zone, region and instance type", NODE, labels),
    both("NoInternalIP", "the Node has a valid InternalIP", NODE, internal_ip),
    both(
        "OtherFamily",
        "its InternalIP is of the same family, IPv4 or IPv6, as that of most Nodes without the taint",
        NODE,
        family,
    ),
    both("NotReady", "the Node is Ready", NODE, ready),
    both("NoHeartbeat", "the kubelet has reported within 10 minutes", NODE, heartbeat),
    both("Deleting", "neither the Node nor its NodeClaim is being deleted", CLAIM, not_deleting),
    both("ShutDown", "the instance is not stopped", NODE, not_shut_down),
    both("Disrupted", "no controller is about to remove the Node", NODE, not_disrupted),
    both("Cordoned", "the Node is not cordoned", NODE, not_cordoned),
    both("PutBack", "the taint has not been removed from this Node before", SAID, not_put_back),
    both("BreakerOpen", "no removed taint has come back on any Node for 24 hours", SAID, breaker_closed),
    both("ManyNodes", "no more than 5 Nodes older than 2 minutes carry the taint at once", NODE, few_nodes),
    both(
        "TooRecent",
        "for 10 minutes the verdict has not changed, and no client has written the taint list (30 minutes if the cloud \
         controller never initialized the Node)",
        SAID,
        lasting,
    ),
    both(
        "BudgetSpent",
        "fewer than 5 removals in the last hour, and fewer than 5 % of all Nodes (one is always allowed)",
        SAID,
        within_budget,
    ),
];

const fn both(reason: &'static str, demands: &'static str, reads: &'static [Watched], check: Check) -> Guard {
    Guard { reason, demands, only: None, reads, check }
}

const fn stale(reason: &'static str, demands: &'static str, reads: &'static [Watched], check: Check) -> Guard {
    Guard { reason, demands, only: Some(OptIn::Stale), reads, check }
}

const fn uninitialized(reason: &'static str, demands: &'static str, reads: &'static [Watched], check: Check) -> Guard {
    Guard { reason, demands, only: Some(OptIn::Uninitialized), reads, check }
}

/// Evaluates all guards for this opt-in. Returns the first refusal.
pub fn admit(scene: &Scene) -> Result<(), Refusal> {
    let mut asked = ALL.iter().filter(|guard| guard.only.is_none_or(|only| only == scene.opt_in));
    asked.try_for_each(|guard| (guard.check)(scene).map_err(|because| Refusal { reason: guard.reason, because }))
}

/// A guard that reads stale objects agrees to what it would refuse. For example, it cannot see a pause in a list that
/// cannot be read.
fn current(scene: &Scene) -> Result<(), String> {
    for watched in ALL.iter().flat_map(|guard| guard.reads) {
        if let Some(why) = scene.doubts.not_current.get(watched) {
            return Err(format!("{} are not current, and one of them could forbid the removal: {why}", watched.name()));
        }
    }
    Ok(())
}

fn clock_is_known(scene: &Scene) -> Result<(), String> {
    let Some(why) = &scene.doubts.clock else { return Ok(()) };
    Err(format!("the current time is in doubt, so no wait can be measured: {why}"))
}

fn not_paused(scene: &Scene) -> Result<(), String> {
    let paused = |value: Option<&str>| value.is_some_and(|v| v != "false");
    if paused(scene.node.metadata.annotation(PAUSE_ANNOTATION)) {
        return Err(format!("the Node has the annotation {PAUSE_ANNOTATION}"));
    }
    match scene.pool {
        Some(pool) if paused(pool.metadata.annotation(PAUSE_ANNOTATION)) => {
            Err(format!("NodePool {} has the annotation {PAUSE_ANNOTATION}", pool.name()))
        }
        _ => Ok(()),
    }
}

fn pool_is_known(scene: &Scene) -> Result<(), String> {
    match (scene.node.metadata.label("karpenter.sh/nodepool"), scene.pool) {
        (Some(named), None) => {
            Err(format!("NodePool {named} cannot be read, and its annotation could forbid the removal"))
        }
        _ => Ok(()),
    }
}

fn proven(scene: &Scene) -> Result<(), String> {
    match &scene.diagnosis.status {
        Some(status) if status.cause == scene.opt_in.cause() && status.confidence == Confidence::Certain => Ok(()),
        Some(status) => Err(format!("the verdict is {} ({:?})", status.cause, status.confidence)),
        None => Err("there is no verdict".to_owned()),
    }
}

/// The label alone is no proof, because a NodePool's template can set it. An Event is no proof either. Anyone can
/// create one, and it may be about an earlier Node of the same name.
fn fingerprinted(scene: &Scene) -> Result<(), String> {
    if cloud_controller::has_labelled(scene.node) {
        return Ok(());
    }
    Err("managedFields show no label that the cloud controller wrote in the update that removes the taint".to_owned())
}

/// The verdict says so too, but the Node may have changed since.
fn not_fingerprinted(scene: &Scene) -> Result<(), String> {
    let labelled = cloud_controller::is_labelled(scene.node).then_some("a label");
    let left = labelled.or_else(|| cloud_controller::has_addressed(scene.node).then_some("an address"));
    left.map_or(Ok(()), |what| Err(format!("the Node has {what} that the cloud controller sets")))
}

/// The cloud controller asks EC2 whether the instance exists, and may have done so for an earlier Node. Karpenter
/// launched the instance and labeled the Node with the same providerID. A Node that was recreated since has no label.
/// Source: karpenter v1.14.1 pkg/controllers/nodeclaim/lifecycle/registration.go.
fn registered(scene: &Scene) -> Result<(), String> {
    let Some(claim) = scene.claim else { return Err("no NodeClaim has the Node's providerID".to_owned()) };
    let (name, id) = (claim.name(), &claim.status.provider_id);
    if *id != scene.node.spec.provider_id {
        return Err(format!("NodeClaim {name} has another providerID: {id:?}"));
    }
    if !claim.is_true("Registered") {
        return Err(format!("NodeClaim {name} is not Registered"));
    }
    if scene.node.metadata.label("karpenter.sh/registered") != Some("true") {
        return Err(format!("NodeClaim {name} is Registered, but the Node lacks the label karpenter.sh/registered"));
    }
    Ok(())
}

fn expected_taint(scene: &Scene) -> Result<(), String> {
    if exact_taint(scene.node).is_some() {
        return Ok(());
    }
    let found: Vec<_> =
        scene.node.spec.taints.iter().filter(|t| t.key == UNINITIALIZED_TAINT).map(ToString::to_string).collect();
    Err(if found.is_empty() {
        format!("{UNINITIALIZED_TAINT} is not there")
    } else {
        format!("found {}", found.join(", "))
    })
}

fn provider_id(scene: &Scene) -> Result<(), String> {
    if scene.node.spec.provider_id.is_empty() { Err("spec.providerID is empty".to_owned()) } else { Ok(()) }
}

fn labels(scene: &Scene) -> Result<(), String> {
    let missing: Vec<_> =
        LABELS.into_iter().filter(|key| scene.node.metadata.label(key).is_none_or(str::is_empty)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("the Node lacks {}", missing.join(", "))) }
}

fn internal_ip(scene: &Scene) -> Result<(), String> {
    let Some(address) = scene.node.address("InternalIP") else { return Err("the Node has no InternalIP".to_owned()) };
    let usable = |ip: IpAddr| {
        let link_local = match ip {
            IpAddr::V4(ip) => ip.is_link_local() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        };
        !(link_local || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast())
    };
    if address.parse().is_ok_and(usable) {
        Ok(())
    } else {
        Err(format!("InternalIP {address:?} is not the address of a node"))
    }
}

/// An address of the other family is one that nobody in the cluster reaches; a Node of it that somebody has freed of
/// the taint by hand does not make it the cluster's.
fn family(scene: &Scene) -> Result<(), String> {
    let tally = scene.tally;
    let (name, same, other) = match scene.node.internal_ip() {
        Some(IpAddr::V4(_)) => ("IPv4", tally.ipv4, tally.ipv6),
        Some(IpAddr::V6(_)) => ("IPv6", tally.ipv6, tally.ipv4),
        None => return Ok(()),
    };
    if other > 0 && same <= other {
        Err(format!("InternalIP is {name}, as on {same} Nodes in service, but {other} have the other family"))
    } else {
        Ok(())
    }
}

fn ready(scene: &Scene) -> Result<(), String> {
    if scene.node.is_ready() {
        return Ok(());
    }
    let shown = scene.node.condition("Ready").map_or_else(|| "absent".to_owned(), Condition::shown);
    Err(format!("the Node's Ready condition is {shown}"))
}

fn heartbeat(scene: &Scene) -> Result<(), String> {
    match scene.node.condition("Ready").and_then(|c| *c.last_heartbeat_time) {
        Some(at) if scene.now - at <= HEARTBEAT_WITHIN => Ok(()),
        Some(at) => Err(format!("the kubelet reported last at {}", stamp(at))),
        None => Err("the Node's Ready condition carries no heartbeat".to_owned()),
    }
}

fn not_deleting(scene: &Scene) -> Result<(), String> {
    if scene.node.metadata.deletion_timestamp.is_some() {
        return Err("the Node is being deleted".to_owned());
    }
    match scene.claim {
        Some(claim) if claim.metadata.deletion_timestamp.is_some() => {
            Err(format!("NodeClaim {} is being deleted", claim.name()))
        }
        _ => Ok(()),
    }
}

fn not_shut_down(scene: &Scene) -> Result<(), String> {
    scene.node.taint(SHUT_DOWN_TAINT).map_or(Ok(()), |taint| Err(format!("the Node carries {taint}")))
}

fn not_disrupted(scene: &Scene) -> Result<(), String> {
    let of = |key: &str| {
        let mut known = DISRUPTED_TAINTS.iter().chain([&REBOOTING_TAINT]).chain(&REMOVED_TAINTS);
        known.any(|known| if known.ends_with('/') { key.starts_with(known) } else { key == *known })
    };
    scene
        .node
        .spec
        .taints
        .iter()
        .find(|taint| of(&taint.key))
        .map_or(Ok(()), |taint| Err(format!("the Node carries {taint}")))
}

fn not_cordoned(scene: &Scene) -> Result<(), String> {
    if scene.node.spec.unschedulable { Err("the Node is cordoned".to_owned()) } else { Ok(()) }
}

fn not_put_back(scene: &Scene) -> Result<(), String> {
    match remediated(scene.diagnosis) {
        Some(done) if done.reason == super::PUT_BACK => Err(done.message.to_string()),
        _ => stamp::came_back(scene.node).map_or(Ok(()), |taint| Err(stamp::put_back(scene.node, taint).0)),
    }
}

fn breaker_closed(scene: &Scene) -> Result<(), String> {
    scene
        .tally
        .put_back
        .as_ref()
        .map_or(Ok(()), |message| Err(format!("a removed taint came back, so nothing is removed: {message}")))
}

/// If many Nodes carry the taint at once, the cloud controller itself is broken.
fn few_nodes(scene: &Scene) -> Result<(), String> {
    let tainted = scene.tally.tainted;
    if tainted <= scene.limits.many() {
        Ok(())
    } else {
        Err(format!("{tainted} Nodes carry it at once, so check the cloud controller"))
    }
}

/// Counts from the first write of this verdict, or from the last write of the taint list, whichever is later.
fn lasting(scene: &Scene) -> Result<(), String> {
    let seen = match remediated(scene.diagnosis) {
        // The verdict was old enough when that was written.
        Some(said) if said.reason == REMOVING => None,
        said => Some(said.map_or(scene.now, |c| c.last_transition_time)),
    };
    let written = cloud_controller::last_taint_writer(scene.node).and_then(|writer| writer.time);
    match seen.max(written) {
        Some(since) if scene.now - since < scene.limits.wait(scene.opt_in) => {
            Err(format!("nodewhy has seen no change only since {}", stamp(since)))
        }
        _ => Ok(()),
    }
}

fn within_budget(scene: &Scene) -> Result<(), String> {
    // An announced removal is already counted.
    let own = remediated(scene.diagnosis).is_some_and(|c| c.reason == REMOVING);
    let (spent, budget) =
        (scene.tally.removals.saturating_sub(usize::from(own)), scene.limits.budget(scene.tally.nodes));
    if spent < budget {
        return Ok(());
    }
    let removals = if budget == 1 { "1 removal".to_owned() } else { format!("{budget} removals") };
    Err(format!("the budget allows {removals} in each --remediation-window, and nodewhy has made all of them"))
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
