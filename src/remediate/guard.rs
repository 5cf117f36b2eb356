//! The guards before a taint is removed: each is one question about the scene, and one refusal.

use super::breaker::Tally;
use super::{CAUSE, Limits, exact_taint, remediated};
use crate::api::{Confidence, NodeDiagnosis};
use crate::cloud_controller;
use crate::foreign::{Condition, Node, NodeClaim, NodePool};
use crate::karpenter::UNINITIALIZED_TAINT;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use std::net::IpAddr;

/// On a Node or a NodePool: no taint is removed there, whatever its value but `false`.
pub const PAUSE: &str = "nodewhy.dev/pause-remediation";

/// The kubelet reports every 5 minutes, with up to half of that added at random: two reports missed are no chance.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `calculateDelay`, `nodeStatusReportFrequency`.
const HEARTBEAT_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// What a cloud-aware scheduler, the volume binder and kube-proxy read. The cloud controller sets them, and so does Karpenter.
const LABELS: [&str; 3] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type"];

/// k8s.io/cloud-provider v0.36.3 api/well_known_taints.go.
const SHUT_DOWN_TAINT: &str = "node.cloudprovider.kubernetes.io/shutdown";

/// Keys, or prefixes where they end in `/`, of those who empty a Node before they remove it.
const DISRUPTED_TAINTS: [&str; 4] = [
    // core pkg/apis/v1/taints.go (v1.14.3) and, before 1.0, pkg/apis/v1beta1/taints.go.
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
    // cluster-autoscaler utils/taints/taints.go.
    "ToBeDeletedByClusterAutoscaler",
    // aws-node-termination-handler pkg/node/node.go.
    "aws-node-termination-handler/",
];

/// What the guards look at.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    pub now: DateTime<Utc>,
    pub limits: &'a Limits,
    pub diagnosis: &'a NodeDiagnosis,
    pub node: &'a Node,
    pub claim: Option<&'a NodeClaim>,
    /// The NodePool that the Node names, where it exists.
    pub pool: Option<&'a NodePool>,
    pub tally: &'a Tally,
}

/// One precondition.
#[derive(Debug)]
pub struct Guard {
    /// The reason of its refusal: in the condition, the Event, the metric and the log.
    pub reason: &'static str,
    /// What it demands.
    pub demands: &'static str,
    check: fn(&Scene) -> Result<(), String>,
}

/// A guard that said no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub reason: &'static str,
    pub because: String,
}

/// Every guard, in the order in which they are asked: first who may say no to everything, then the verdict, then the Node, then
/// what was done elsewhere.
pub const ALL: &[Guard] = &[
    Guard {
        reason: "Paused",
        demands: "neither the Node nor its NodePool has the annotation nodewhy.dev/pause-remediation",
        check: not_paused,
    },
    Guard { reason: "NodePoolUnknown", demands: "the NodePool that could pause it can be read", check: pool_is_known },
    Guard { reason: "NotProven", demands: "the verdict is StaleCloudProviderTaint and Certain", check: proven },
    Guard {
        reason: "NoFingerprint",
        demands: "the Node has a label that only the cloud controller sets, in the update that removes the taint",
        check: fingerprinted,
    },
    Guard {
        reason: "UnexpectedTaint",
        demands: "the taint is there once, as the kubelet sets it: value true, effect NoSchedule",
        check: expected_taint,
    },
    Guard { reason: "NoProviderID", demands: "spec.providerID is set", check: provider_id },
    Guard { reason: "LabelsMissing", demands: "zone, region and instance type are on the Node", check: labels },
    Guard { reason: "NoInternalIP", demands: "the Node has a valid InternalIP", check: internal_ip },
    Guard { reason: "NotReady", demands: "the Node is Ready", check: ready },
    Guard { reason: "NoHeartbeat", demands: "the kubelet has reported within 10 minutes", check: heartbeat },
    Guard { reason: "Deleting", demands: "neither the Node nor its NodeClaim is being deleted", check: not_deleting },
    Guard { reason: "ShutDown", demands: "the instance is not stopped", check: not_shut_down },
    Guard { reason: "Disrupted", demands: "nobody is about to remove the Node", check: not_disrupted },
    Guard { reason: "Cordoned", demands: "the Node is not cordoned", check: not_cordoned },
    Guard { reason: "PutBack", demands: "the taint has not been removed from this Node before", check: not_put_back },
    Guard { reason: "BreakerOpen", demands: "no removed taint has come back on any Node for 24 hours", check: breaker_closed },
    Guard { reason: "ManyNodes", demands: "no more than 5 Nodes older than 2 minutes carry the taint at once", check: few_nodes },
    Guard {
        reason: "TooRecent",
        demands: "the same verdict has stood, and the taint list has not been written, for 10 minutes",
        check: lasting,
    },
    Guard {
        reason: "BudgetSpent",
        demands: "fewer than 5 removals in the last hour, and fewer than 5 % of all Nodes (one is always allowed)",
        check: within_budget,
    },
];

/// Asks all guards; the first that refuses is the answer.
pub fn admit(scene: &Scene) -> Result<(), Refusal> {
    ALL.iter().try_for_each(|guard| (guard.check)(scene).map_err(|because| Refusal { reason: guard.reason, because }))
}

fn not_paused(scene: &Scene) -> Result<(), String> {
    let paused = |value: Option<&str>| value.is_some_and(|v| v != "false");
    if paused(scene.node.metadata.annotation(PAUSE)) {
        return Err(format!("the Node has the annotation {PAUSE}"));
    }
    match scene.pool {
        Some(pool) if paused(pool.metadata.annotation(PAUSE)) => Err(format!("NodePool {} has the annotation {PAUSE}", pool.name())),
        _ => Ok(()),
    }
}

fn pool_is_known(scene: &Scene) -> Result<(), String> {
    match (scene.node.metadata.label("karpenter.sh/nodepool"), scene.pool) {
        (Some(named), None) => Err(format!("NodePool {named} cannot be read, and it could say that nothing may be done here")),
        _ => Ok(()),
    }
}

fn proven(scene: &Scene) -> Result<(), String> {
    match &scene.diagnosis.status {
        Some(status) if status.cause == CAUSE && status.confidence == Confidence::Certain => Ok(()),
        Some(status) => Err(format!("the verdict is {} ({:?})", status.cause, status.confidence)),
        None => Err("there is no verdict".to_owned()),
    }
}

/// An Event would not do: it may be about an earlier Node of the same name.
fn fingerprinted(scene: &Scene) -> Result<(), String> {
    if cloud_controller::has_labelled(scene.node) {
        return Ok(());
    }
    Err("the Node has none of the labels that the cloud controller sets in the update that removes the taint".to_owned())
}

fn expected_taint(scene: &Scene) -> Result<(), String> {
    if exact_taint(scene.node).is_some() {
        return Ok(());
    }
    let found: Vec<_> = scene.node.spec.taints.iter().filter(|t| t.key == UNINITIALIZED_TAINT).map(ToString::to_string).collect();
    Err(if found.is_empty() { format!("{UNINITIALIZED_TAINT} is not there") } else { format!("found {}", found.join(", ")) })
}

fn provider_id(scene: &Scene) -> Result<(), String> {
    if scene.node.spec.provider_id.is_empty() { Err("spec.providerID is empty".to_owned()) } else { Ok(()) }
}

fn labels(scene: &Scene) -> Result<(), String> {
    let missing: Vec<_> = LABELS.into_iter().filter(|key| scene.node.metadata.label(key).is_none_or(str::is_empty)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("the Node is without {}", missing.join(", "))) }
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
    if address.parse().is_ok_and(usable) { Ok(()) } else { Err(format!("InternalIP {address:?} is not the address of a machine")) }
}

fn ready(scene: &Scene) -> Result<(), String> {
    if scene.node.is_ready() {
        return Ok(());
    }
    let shown = scene.node.condition("Ready").map_or_else(|| "absent".to_owned(), Condition::shown);
    Err(format!("the Node's Ready condition is {shown}"))
}

fn heartbeat(scene: &Scene) -> Result<(), String> {
    match scene.node.condition("Ready").and_then(|c| c.last_heartbeat_time) {
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
        Some(claim) if claim.metadata.deletion_timestamp.is_some() => Err(format!("NodeClaim {} is being deleted", claim.name())),
        _ => Ok(()),
    }
}

fn not_shut_down(scene: &Scene) -> Result<(), String> {
    scene.node.taint(SHUT_DOWN_TAINT).map_or(Ok(()), |taint| Err(format!("the Node carries {taint}")))
}

fn not_disrupted(scene: &Scene) -> Result<(), String> {
    let of = |key: &str| DISRUPTED_TAINTS.iter().any(|known| if known.ends_with('/') { key.starts_with(known) } else { key == *known });
    scene.node.spec.taints.iter().find(|taint| of(&taint.key)).map_or(Ok(()), |taint| Err(format!("the Node carries {taint}")))
}

fn not_cordoned(scene: &Scene) -> Result<(), String> {
    if scene.node.spec.unschedulable { Err("the Node is cordoned".to_owned()) } else { Ok(()) }
}

fn not_put_back(scene: &Scene) -> Result<(), String> {
    match remediated(scene.diagnosis) {
        Some(done) if done.reason == super::PUT_BACK => Err(done.message.clone()),
        _ => Ok(()),
    }
}

fn breaker_closed(scene: &Scene) -> Result<(), String> {
    scene.tally.put_back.as_ref().map_or(Ok(()), |message| Err(format!("a removed taint came back, so nothing is removed: {message}")))
}

/// Where many show it at once, the cloud controller is the patient.
fn few_nodes(scene: &Scene) -> Result<(), String> {
    let tainted = scene.tally.tainted;
    if tainted <= scene.limits.many() {
        Ok(())
    } else {
        Err(format!("{tainted} Nodes carry it at once, so look after the cloud controller"))
    }
}

/// Counted from when this verdict was first written down, and from the last write of the taint list, whichever is later.
fn lasting(scene: &Scene) -> Result<(), String> {
    let seen = remediated(scene.diagnosis).map_or(scene.now, |c| c.last_transition_time);
    let written = cloud_controller::last_taint_writer(scene.node).and_then(|writer| writer.time);
    let since = written.map_or(seen, |at| at.max(seen));
    if scene.now - since >= scene.limits.wait() { Ok(()) } else { Err(format!("it is seen unchanged only since {}", stamp(since))) }
}

fn within_budget(scene: &Scene) -> Result<(), String> {
    let (spent, budget) = (scene.tally.removals, scene.limits.budget(scene.tally.nodes));
    if spent < budget { Ok(()) } else { Err(format!("{budget} removals are allowed at a time, and as many were made")) }
}

fn stamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}
