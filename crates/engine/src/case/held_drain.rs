//! A Ready Node that is cordoned and to be emptied, and that a PodDisruptionBudget keeps from getting empty.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_leaving;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Event, Node, Pod};
use crate::upstream::{cordons, eks};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

/// Karpenter repeats it whenever it looks for what to disrupt, every two minutes at most.
/// Source: core pkg/events/recorder.go `defaultDedupeTimeout` (v1.14.3).
const STILL_SAID: TimeDelta = TimeDelta::minutes(30);

/// Whether Karpenter says that a PodDisruptionBudget holds a pod of the Node, as it does of every Node that it would
/// like to replace: alone it is no fault.
/// Source: core pkg/controllers/state/statenode.go `ValidatePodsDisruptable` (v1.0.5, v1.14.3).
fn says_held(event: &Event) -> bool {
    event.reason == "DisruptionBlocked" && event.message.contains("prevents pod evictions")
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_leaving(node) {
        return None;
    }
    let since = cordons::since(node)?;
    let (patience, evidence) = match cluster.claim_of_node(node) {
        // What it was made for tells whether it was emptied.
        Some(_) => (t.terminate, blocked(cluster, node, now)?),
        // EKS gives up after 15 minutes: twice that.
        None => (t.terminate / 2, replaced(cluster, node, since)?),
    };
    let wait = Wait::new(Stage::Ready, since, patience, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::DrainHeld, ..wait }.only_with_proof())
}

/// `kubectl drain` leaves those of DaemonSets, and those that the kubelet makes by itself.
/// Source: kubectl v0.36.3 pkg/drain/filters.go.
pub fn stays(pod: &Pod) -> bool {
    pod.daemon_set().is_some() || pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
}

fn blocked(cluster: &ClusterState, node: &Node, now: DateTime<Utc>) -> Option<Evidence> {
    let said = cluster.events("Node", node.name()).filter(|e| says_held(e));
    let told = said.max_by_key(|e| e.last_seen()).filter(|e| e.last_seen().is_some_and(|at| now - at <= STILL_SAID))?;
    let because = "the Node is cordoned, and cannot be emptied";
    Some(Evidence::new(format!("Event Node/{}", node.name()), "message", told.said(), because))
}

/// Evidence that EKS is updating the node group: EKS first adds Nodes of the new version, then cordons the old Nodes
/// and drains them one by one.
/// Source: <https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html>.
fn replaced(cluster: &ClusterState, node: &Node, cordoned: DateTime<Utc>) -> Option<Evidence> {
    let (group, own) = (node.metadata.label(eks::NODE_GROUP)?, revision(node)?);
    let groups = cluster.once(&REVISIONS, "", || revisions(cluster));
    let others = groups.get(group)?.iter().filter(|(revision, _)| **revision != own);
    let newer = others.filter(|(_, (came, _))| Some(*came) > node.metadata.creation_timestamp && *came <= cordoned);
    let (revision, (_, name)) = newer.min_by_key(|(_, (came, _))| came)?;
    let because = format!(
        "Nodes of another version of node group {group} came before this one, of {own}, was cordoned: the group is \
         being updated"
    );
    Some(Evidence::new(format!("Node/{name}"), "metadata.labels", revision.clone(), because))
}

/// The first Node of each version of each node group.
type Revisions = BTreeMap<String, BTreeMap<String, (DateTime<Utc>, String)>>;

static REVISIONS: Memo<Revisions> = Memo::new("the first Nodes of the versions of node groups");

fn revisions(cluster: &ClusterState) -> Revisions {
    let mut groups = Revisions::new();
    for node in cluster.nodes() {
        let group = node.metadata.label(eks::NODE_GROUP);
        let Some(((group, revision), came)) = group.zip(revision(node)).zip(node.metadata.creation_timestamp) else {
            continue;
        };
        let came = (came, node.name().to_owned());
        let first = groups.entry(group.to_owned()).or_default().entry(revision).or_insert_with(|| came.clone());
        *first = came.min(first.clone());
    }
    groups
}

/// The version that EKS created a Node of a managed node group from, by its labels.
fn revision(node: &Node) -> Option<String> {
    let values = eks::GROUP_VERSION.map(|label| Some(format!("{label}={}", node.metadata.label(label)?)));
    let told: Vec<String> = values.into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(","))
}
