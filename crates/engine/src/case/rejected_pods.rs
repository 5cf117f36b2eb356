//! Pods that the kubelet of a Ready Node rejects, one after the other: the scheduler counts what they ask for as free.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::objects::{Node, Pod};
use chrono::{DateTime, TimeDelta, Utc};
use readers::source_text::mask;

#[derive(Debug)]
pub struct RejectedPods<'w> {
    /// The newest rejected pod.
    pub last: &'w Pod,
    pub count: usize,
    pub since: DateTime<Utc>,
    /// The device or other extended resource that all rejected pods request.
    pub resource: Option<&'w str>,
}

/// The reasons with which the kubelet rejects a scheduled pod, other than lack of room. Lack of room (`OutOfcpu`)
/// passes by itself: the scheduler's view of the Node only lags behind.
/// Sources: kubernetes v1.36.3 pkg/kubelet/lifecycle/predicate.go `UnexpectedAdmissionError`,
/// pkg/kubelet/cm/topologymanager/topology_manager.go `ErrorTopologyAffinity`,
/// pkg/kubelet/cm/cpumanager/policy_static.go `ErrorSMTAlignment`.
const REASONS: [&str; 3] = ["UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError"];

/// The controller that recreates the pods waits longer each time, so the newest rejection counts for this long.
const STILL: TimeDelta = TimeDelta::hours(1);
/// One or two are rejected while a device plugin is replaced.
const AT_LEAST: usize = 3;

pub fn rejected_pods<'w>(cluster: &'w ClusterState, node: &'w Node, now: DateTime<Utc>) -> Option<RejectedPods<'w>> {
    let rejects = |pod: &&Pod| pod.status.phase == "Failed" && REASONS.contains(&pod.status.reason.as_str());
    let made = |pod: &Pod| pod.metadata.creation_timestamp;
    let mut all: Vec<&Pod> = cluster.pods_on(node.name()).filter(rejects).collect();
    let last = *all.iter().max_by_key(|pod| (made(pod), &pod.metadata.name))?;
    all.retain(|pod| pod.status.reason == last.status.reason);
    let since = all.iter().filter_map(|pod| made(pod)).min()?;
    let asks = |pod: &Pod, resource: &str| pod.requests().any(|(name, _)| name == resource);
    let mut own = last.requests().map(|(name, _)| name);
    let resource = own.find(|name| name.contains('/') && all.iter().all(|pod| asks(pod, name)));
    // One that it took meanwhile had the same and was well with it.
    let taken = |pod: &Pod| {
        pod.status.phase != "Failed"
            && pod.daemon_set().is_none()
            && pod.has_started()
            && made(pod) > Some(since)
            && resource.is_none_or(|resource| asks(pod, resource))
    };
    let goes_on = made(last).is_some_and(|at| now - at <= STILL);
    let taken = cluster.pods_on(node.name()).any(taken);
    (all.len() >= AT_LEAST && goes_on && !taken).then_some(RejectedPods { last, count: all.len(), since, resource })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let RejectedPods { last, since, .. } = rejected_pods(cluster, node, now)?;
    let because =
        "the kubelet ends such a pod as Failed; who made it makes the next, and the scheduler sends it there again";
    let said = mask(&last.status.message);
    let evidence = Evidence::new(format!("Pod/{}", last.metadata.name), "status.message", said, because);
    let wait = Wait::new(Stage::Ready, since, t.ready * 3, t, evidence);
    Some(Wait { proven: t.ready, symptom: Symptom::PodsRejected, ..wait })
}
