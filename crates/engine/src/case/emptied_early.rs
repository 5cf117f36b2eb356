//! Machines that Karpenter makes for a pod, and removes as empty because a taint keeps the pod away that it was not
//! told to wait for.

use crate::case::judging::Judging;
use crate::case::pool_wait;
use crate::case::stage::Wait;
use crate::case::undersized_nodes::machines;
use crate::case::{unplaced, waiting_pods};
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, NodePool, Pod, Taint};
use crate::upstream::karpenter::is_own_taint;
use chrono::{DateTime, Utc};

/// A taint that keeps a pod from machines that were made for it.
#[derive(Debug)]
pub struct EmptiedEarly<'w> {
    pub pod: &'w Pod,
    pub taint: &'w Taint,
    /// A Node of the NodePool that has it.
    pub node: &'w Node,
    /// Machines that were made for the pod and removed as empty, as far as Events tell.
    pub removed: usize,
    /// When the first of them was removed.
    pub since: DateTime<Utc>,
}

/// Two may go for the sake of pods that were quicker.
const IN_A_ROW: usize = 3;

/// `Disrupting NodeClaim: Emptiness/Delete`, `Disrupting NodeClaim: Empty/Delete`.
/// Sources: core v0.33.0, v1.0.5 pkg/controllers/disruption/events/events.go `Terminating`; v0.33.0 emptiness.go
/// `Type`; v1.0.5 pkg/apis/v1/nodepool.go `DisruptionReasonEmpty`.
fn is_removed_as_empty(event: &Event) -> bool {
    event.reason == "DisruptionTerminating" && event.message.contains("NodeClaim: Empt")
}

pub fn emptied_early<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> Option<EmptiedEarly<'w>> {
    let waiting = waiting_pods(cluster).filter(|pod| unplaced::admits(pool, pod));
    let mut waiting: Vec<&Pod> = waiting.collect();
    waiting.sort_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name));
    waiting.into_iter().find_map(|pod| {
        let made = machines(cluster, pod);
        if made.len() < IN_A_ROW {
            return None;
        }
        let gone = cluster.claim_events_of_pool(pool.name()).filter(|event| is_removed_as_empty(event));
        let mut gone: Vec<&Event> = gone.filter(|e| made.contains_key(&*e.involved_object.name)).collect();
        gone.sort_by_key(|event| (&event.involved_object.name, event.last_seen()));
        gone.dedup_by_key(|event| &event.involved_object.name);
        let since = gone.iter().filter_map(|event| event.last_seen()).min()?;
        let (node, taint) = keeps_away(cluster, pool, pod)?;
        (gone.len() >= IN_A_ROW).then_some(EmptiedEarly { pod, taint, node, removed: gone.len(), since })
    })
}

/// A taint that neither the NodePool gives its machines, nor Karpenter or Kubernetes, and that the pod does not
/// tolerate.
fn keeps_away<'w>(cluster: &'w ClusterState, pool: &NodePool, pod: &Pod) -> Option<(&'w Node, &'w Taint)> {
    let template = &pool.spec.template.spec;
    let is_told = |taint: &Taint| template.taints.iter().chain(&template.startup_taints).any(|own| own.matches(taint));
    let is_foreign = |taint: &&Taint| {
        taint.keeps_pods_off()
            && !is_own_taint(&taint.key)
            && !is_told(taint)
            && !pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    };
    let of_pool = |node: &&Node| node.metadata.label("karpenter.sh/nodepool") == Some(pool.name());
    cluster.nodes().filter(of_pool).find_map(|node| Some((node, node.spec.taints.iter().find(is_foreign)?)))
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let found = emptied_early(judging.cluster, pool)?;
    pool_wait::emptied_early_wait(found.pod, found.since, judging.thresholds)
}
