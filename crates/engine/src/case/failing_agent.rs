//! A Ready Node on which an agent that its pods need for their network has not been Ready for long, and is elsewhere.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Condition, Node, Pod};
use crate::upstream::network_agents::serves_pods;
use chrono::{DateTime, Utc};
use std::collections::BTreeSet;

/// The condition of a pod that says whether it is Ready, where it is not, and since when.
fn unready(pod: &Pod) -> Option<(&Condition, DateTime<Utc>)> {
    let condition = pod.status.conditions.iter().find(|c| c.type_ == "Ready" && c.is_false())?;
    Some((condition, condition.last_transition_time?))
}

/// The agent that has not been Ready for longest.
pub fn failing_agent<'w>(pods: impl Iterator<Item = &'w Pod>) -> Option<(&'w Pod, DateTime<Utc>)> {
    let stays = |pod: &&Pod| pod.metadata.deletion_timestamp.is_none();
    let agents = pods.filter(|pod| pod.daemon_set().is_some_and(serves_pods)).filter(stays);
    agents.filter_map(|pod| Some((pod, unready(pod)?.1))).min_by_key(|(pod, since)| (*since, &pod.metadata.name))
}

/// Whether a pod of the same workload is Ready.
fn works_somewhere(cluster: &ClusterState, pod: &Pod) -> bool {
    static WORKING: Memo<BTreeSet<(String, String)>> = Memo::new("the workloads of a namespace that have a Ready pod");
    let workload = |pod: &Pod| {
        let (kind, name) = pod.workload();
        (kind.to_owned(), name.to_owned())
    };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let working = cluster.once(&WORKING, namespace, || {
        cluster.pods_in(namespace).filter(|other| other.is_ready()).map(workload).collect()
    });
    working.contains(&workload(pod))
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, thresholds: t, .. } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let (pod, since) = failing_agent(cluster.pods_on(node.name()))?;
    // What fails everywhere is no trouble of this Node.
    if !works_somewhere(cluster, pod) {
        return None;
    }
    let because = "the kubelet asks the network plugin only once whether it is there; the Node stays Ready without it";
    let object = format!("Pod/{}", pod.metadata.name);
    let shown = unready(pod)?.0.shown();
    let evidence = Evidence::new(object, r#"status.conditions[?(@.type=="Ready")]"#, shown, because);
    // An update of the DaemonSet replaces one pod after the other, and each takes a minute or two.
    let wait = Wait::new(Stage::Ready, since, t.ready * 3, t, evidence);
    Some(Wait { proven: t.ready, symptom: Symptom::AgentFails, ..wait })
}
