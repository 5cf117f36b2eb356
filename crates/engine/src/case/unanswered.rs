//! Running pods whose readiness probes get no answer.

use super::unstarted_pods::STILL_REFUSED;
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, Pod};
use chrono::{DateTime, Utc};

/// The newest failed readiness probe of a running pod that got no answer at all. If the app gives a wrong answer, the
/// Event shows that answer.
/// Source: kubernetes v1.36.3 pkg/kubelet/prober/prober.go `probe`; net and net/http of Go say the rest.
pub(super) fn unanswered<'w>(cluster: &'w ClusterState, pod: &'w Pod) -> Option<&'w Event> {
    const NOBODY: [&str; 3] = ["context deadline exceeded", "i/o timeout", "no route to host"];
    if pod.spec.host_network || pod.is_ready() || !pod.runs() || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let probes =
        cluster.told_of_pod(pod).filter(|e| e.reason == "Unhealthy" && e.message.contains("Readiness probe failed"));
    let newest = probes.max_by_key(|e| (e.last_seen(), &e.message))?;
    NOBODY.iter().any(|said| newest.message.contains(said)).then_some(newest)
}

/// The pods of a Node that get no answer still.
pub(super) fn still_unanswered<'w>(
    cluster: &'w ClusterState,
    node: &Node,
    now: DateTime<Utc>,
) -> impl Iterator<Item = (&'w Pod, &'w Event)> {
    let all = cluster.pods_on(node.name()).filter_map(move |pod| Some((pod, unanswered(cluster, pod)?)));
    all.filter(move |(_, event)| event.last_seen().is_some_and(|at| now - at <= STILL_REFUSED))
}

/// The one that has got none for longest.
pub(super) fn earliest<'w>(pods: impl Iterator<Item = (&'w Pod, &'w Event)>) -> Option<(&'w Pod, &'w Event)> {
    pods.min_by_key(|(pod, event)| (began(event), &pod.metadata.name))
}

pub(super) fn began(event: &Event) -> Option<DateTime<Utc>> {
    event.first_timestamp.or(event.last_seen())
}
