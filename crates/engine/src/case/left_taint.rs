//! A Ready Node that a taint takes out of service, which whoever set it needs for a while only, and that has stood for
//! longer.

use super::judging::Judging;
use super::wait::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::objects::{Condition, Node, NodeClaim, Taint};
use crate::upstream::cloud_controller::last_taint_writer;
use crate::upstream::cordons::UNSCHEDULABLE_TAINT;
use crate::upstream::karpenter::DISRUPTED_TAINTS;
use chrono::{DateTime, TimeDelta, Utc};

/// The component that set the taint and has to remove it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setter {
    /// cluster-autoscaler, before it removes the Node.
    Autoscaler,
    /// Karpenter, before it deletes the NodeClaim.
    Karpenter,
    /// People, or what repairs Nodes on their behalf.
    People,
    /// The cloud controller, of an instance that was stopped.
    CloudController,
    /// The node lifecycle controller, for a condition that the Node does not have.
    NodeLifecycle,
    /// The AWS cloud provider within Kubernetes, for a volume that hung.
    Volumes,
}

#[derive(Debug, Clone, Copy)]
pub struct LeftTaint<'n> {
    pub taint: &'n Taint,
    pub by: Setter,
    /// Since when; what is only known to be younger counts from there.
    pub since: DateTime<Utc>,
    /// Whether the objects tell that time.
    pub dated: bool,
}

/// cluster-autoscaler utils/taints/taints.go `ToBeDeletedTaint` (1.17.4, 1.33): its value is the time, in seconds.
pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// The same file, `DeletionCandidateTaint`. It only weighs (`PreferNoSchedule`): no Node is out of service for it.
pub const DELETION_CANDIDATE: &str = "DeletionCandidateOfClusterAutoscaler";
/// kubernetes v1.36.3 k8s.io/api/core/v1/well_known_taints.go. Who sets it takes it off, as the documentation says: no
/// controller does.
pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// k8s.io/cloud-provider v0.36.3 api/well_known_taints.go. Taken off a Ready Node within seconds:
/// controllers/nodelifecycle/node_lifecycle_controller.go `MonitorNodes`.
pub const SHUT_DOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// kubernetes v1.26 legacy-cloud-providers/aws/aws.go `nodeWithImpairedVolumes`; gone with 1.27, and never taken off.
const IMPAIRED_VOLUMES: &str = "NodeWithImpairedVolumes";
/// Taints that the node lifecycle controller sets for Node conditions and removes within seconds after the condition
/// changes.
/// Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `taintKeyToNodeConditionMap`,
/// `doNoScheduleTaintingPass`.
///
/// The taints of condition Ready are left out. Every new Node has one, and an hour's wait for it would make a node that
/// has just joined look stuck.
const MIRRORS: [(&str, &str); 4] = [
    ("node.kubernetes.io/network-unavailable", "NetworkUnavailable"),
    ("node.kubernetes.io/memory-pressure", "MemoryPressure"),
    ("node.kubernetes.io/disk-pressure", "DiskPressure"),
    ("node.kubernetes.io/pid-pressure", "PIDPressure"),
];

/// The first such taint of a Ready Node that nobody deletes, but for those that its NodePool means.
pub fn left_taint<'n>(node: &'n Node, claim: Option<&NodeClaim>) -> Option<LeftTaint<'n>> {
    let deleted = claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some());
    let ready = node.condition("Ready").filter(|ready| ready.is_true())?;
    if deleted || node.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let meant = |taint: &Taint| claim.is_some_and(|claim| claim.spec.taints.iter().any(|own| own.matches(taint)));
    let out_of_service = |taint: &&Taint| taint.keeps_pods_off() && !meant(taint);
    node.spec.taints.iter().filter(out_of_service).find_map(|taint| of_taint(node, claim, ready, taint))
}

fn of_taint<'n>(
    node: &'n Node,
    claim: Option<&NodeClaim>,
    ready: &Condition,
    taint: &'n Taint,
) -> Option<LeftTaint<'n>> {
    let created = node.metadata.creation_timestamp?;
    // The list is one: who wrote it last may have written another taint of it.
    let written = last_taint_writer(node).and_then(|writer| writer.time);
    let left = |by, told: Option<DateTime<Utc>>| {
        Some(LeftTaint { taint, by, since: told.unwrap_or(created).max(created), dated: told.is_some() })
    };
    let again = ready.last_transition_time.max(taint.time_added);
    match &*taint.key {
        TO_BE_DELETED => {
            let seconds = taint.value.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
            left(Setter::Autoscaler, seconds.or(written))
        }
        key if DISRUPTED_TAINTS.contains(&key) => {
            let begun = claim.and_then(|claim| claim.true_since("DisruptionReason"));
            left(Setter::Karpenter, begun.or(written))
        }
        OUT_OF_SERVICE => left(Setter::People, again),
        SHUT_DOWN => left(Setter::CloudController, again),
        IMPAIRED_VOLUMES => left(Setter::Volumes, written),
        UNSCHEDULABLE_TAINT if !node.spec.unschedulable => left(Setter::NodeLifecycle, written.max(taint.time_added)),
        key => {
            let (_, type_) = MIRRORS.iter().find(|(mirror, _)| *mirror == key)?;
            let condition = node.condition(type_)?;
            // Of a Node that somebody has cordoned nobody misses anything.
            if !condition.is_false() || node.spec.unschedulable {
                return None;
            }
            left(Setter::NodeLifecycle, condition.last_transition_time.max(taint.time_added))
        }
    }
}

/// Longer than lifecycle hooks commonly hold an instance that cluster-autoscaler has terminated.
const NO_HOOK_LASTS: TimeDelta = TimeDelta::hours(12);

/// Longer than Karpenter ever tries one replacement: an hour, and ten minutes in earlier versions.
/// Source: core pkg/controllers/disruption/queue.go `maxRetryDuration` (v1.0.5, v1.14.3).
const NO_REPLACEMENT_LASTS: TimeDelta = TimeDelta::minutes(90);

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    let left = left_taint(node, cluster.claim_of_node(node))?;
    let because = "the Node is Ready, and nothing that does not tolerate this taint is scheduled there";
    let evidence = Evidence::new(format!("Node/{}", node.name()), "spec.taints", left.taint.to_string(), because);
    let wait = Wait::new(Stage::Ready, left.since, t.terminate, t, evidence);
    let wait = Wait { proven: wait.patience, symptom: Symptom::TaintLeft, ..wait };
    // What is under way may take its time, where nothing proves that it is not.
    Some(match left.by {
        Setter::Autoscaler if left.dated => Wait { patience: NO_HOOK_LASTS, ..wait },
        Setter::Karpenter if left.dated => Wait { patience: NO_REPLACEMENT_LASTS, ..wait },
        Setter::Autoscaler | Setter::Karpenter => wait.only_with_proof(),
        _ => wait,
    })
}
