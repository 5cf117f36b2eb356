//! A Ready Node that is cordoned and emptied, and to which pods come back that tolerate the cordon.

use super::held_drain::stays;
use super::judging::Judging;
use super::stage::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_leaving;
use crate::cluster_state::ClusterState;
use crate::objects::{Node, Pod, Taint};
use crate::upstream::cordons::{self, UNSCHEDULABLE_TAINT};
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// A pod that came after the cordon, in place of others that did too and were evicted.
#[derive(Debug)]
pub struct Refill<'w> {
    pub pod: &'w Pod,
    /// How many pods of the same workload came to the Node after the cordon and have gone, as far as Events tell.
    pub gone: usize,
}

/// One may go for a reason of its own.
pub const IN_A_ROW: usize = 2;

pub fn refill<'w>(cluster: &'w ClusterState, node: &Node) -> Option<Refill<'w>> {
    let since = cordons::since(node)?;
    let cordon = node.taint(UNSCHEDULABLE_TAINT)?;
    let mut here: Vec<&Pod> = cluster.pods_on(node.name()).filter(|pod| came_back(pod, cordon, since)).collect();
    here.sort_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name));
    here.into_iter().find_map(|pod| {
        let gone = stopped_siblings(cluster, node, pod, since).len();
        (gone >= IN_A_ROW).then_some(Refill { pod, gone })
    })
}

/// The same of a Node whose node group is being updated, where Events do not tell: all that is left on it came so.
pub fn left_over<'w>(cluster: &'w ClusterState, node: &Node) -> Option<Refill<'w>> {
    let since = cordons::since(node)?;
    let cordon = node.taint(UNSCHEDULABLE_TAINT)?;
    let (stay, left): (Vec<&Pod>, Vec<&Pod>) =
        cluster.pods_on(node.name()).filter(|pod| !pod.has_ended()).partition(|pod| stays(pod));
    // A dump may hold the pods of some namespaces only.
    let is_so = !stay.is_empty() && left.iter().all(|pod| came_back(pod, cordon, since));
    let pod = left.into_iter().min_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name))?;
    is_so.then(|| Refill { pod, gone: stopped_siblings(cluster, node, pod, since).len() })
}

/// Whether a controller that keeps a number of pods made it after the cordon, which it tolerates. A Job's come and go
/// by themselves, and a drain leaves those of DaemonSets.
fn came_back(pod: &Pod, cordon: &Taint, since: DateTime<Utc>) -> bool {
    let kept = pod.metadata.owner_references.iter().any(|o| matches!(&*o.kind, "ReplicaSet" | "StatefulSet"));
    kept && pod.metadata.creation_timestamp > Some(since)
        && pod.spec.tolerations.iter().any(|toleration| toleration.tolerates(cordon))
}

/// Pods of the same workload that the kubelet has stopped there since the cordon: a StatefulSet's have one name again
/// and again, and another uid.
fn stopped_siblings<'w>(
    cluster: &'w ClusterState,
    node: &Node,
    pod: &Pod,
    since: DateTime<Utc>,
) -> BTreeSet<(&'w str, &'w str)> {
    let owner = pod.metadata.owner_references.first().map_or("", |owner| &*owner.name);
    let is_sibling = |name: &str| name.strip_prefix(owner).is_some_and(|rest| rest.starts_with('-'));
    let stopped = cluster.pod_events_on(node.name()).filter(|event| {
        // Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_container.go `killContainer`.
        event.reason == "Killing"
            && event.message.starts_with("Stopping container")
            && event.involved_object.namespace.as_deref() == pod.metadata.namespace.as_deref()
            && event.last_seen() > Some(since)
    });
    let told = stopped.map(|event| (event.involved_object.name.as_str(), event.involved_object.uid.as_str()));
    told.filter(|(name, uid)| is_sibling(name) && (*name, *uid) != (&*pod.metadata.name, &*pod.metadata.uid)).collect()
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    if !node.is_ready() || is_leaving(node) {
        return None;
    }
    let since = cordons::since(node)?;
    let found = refill(cluster, node)?;
    let because = "the Node is cordoned, and this pod came to it all the same, as others before it that are gone";
    let pod = format!("Pod/{}", found.pod.metadata.name);
    let evidence = Evidence::new(pod, "spec.tolerations", UNSCHEDULABLE_TAINT, because);
    // EKS gives up an update after 15 minutes.
    let wait = Wait::new(Stage::Ready, since, t.terminate / 4, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::DrainRefilled, ..wait }.only_with_proof())
}
