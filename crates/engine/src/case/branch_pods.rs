//! A Ready Node on which the kubelet reaches none of the pods that have an interface of their own.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::case::out_of_service::is_out_of_service;
use crate::case::unanswered::{began, earliest, still_unanswered};

use crate::api::{Evidence, Stage};
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, Pod};
use crate::upstream::vpc_cni::has_branch_interface;
use chrono::{DateTime, Utc};

/// The pod that has been out of reach for longest.
#[derive(Debug, Clone, Copy)]
pub struct BranchPods<'w> {
    pub pod: &'w Pod,
    pub event: &'w Event,
    /// How many pods of the Node are out of reach so.
    pub count: usize,
    since: DateTime<Utc>,
}

/// Whether another pod of the same workload, with the same probe, is reached on its Node.
pub fn reached_elsewhere(cluster: &ClusterState, found: &BranchPods) -> bool {
    let pods = cluster.pods_in(found.pod.metadata.namespace.as_deref().unwrap_or_default());
    let mut others = pods.filter(|pod| has_branch_interface(pod) && pod.workload() == found.pod.workload());
    others.any(Pod::is_ready)
}

pub fn branch_pods<'w>(cluster: &'w ClusterState, node: &Node, now: DateTime<Utc>) -> Option<BranchPods<'w>> {
    // One that is Ready is reached.
    if cluster.pods_on(node.name()).any(|pod| has_branch_interface(pod) && pod.is_ready()) {
        return None;
    }
    let cut: Vec<_> = still_unanswered(cluster, node, now).filter(|(pod, _)| has_branch_interface(pod)).collect();
    let (pod, event) = earliest(cut.iter().copied())?;
    Some(BranchPods { pod, event, count: cut.len(), since: began(event)? })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let found = branch_pods(cluster, node, now)?;
    let because = "the kubelet reaches none of the pods of this Node that have an interface of their own";
    let evidence =
        Evidence::new(format!("Event Pod/{}", found.pod.metadata.name), "message", found.event.said(), because);
    // A program may take minutes until it listens.
    let wait = Wait::new(Stage::Ready, found.since, t.ready * 3, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::BranchPodsOutOfReach, ..wait })
}
