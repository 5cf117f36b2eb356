//! A Ready Node that starts none of the pods that are scheduled there.

use super::judging::Judging;
use super::out_of_service::is_out_of_service;
use super::wait::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, Pod};
use crate::upstream::network_agents;
use crate::upstream::node_events::{Sandbox, refused_sandbox, refuses_container};
use chrono::{DateTime, TimeDelta, Utc};

/// How long after its last message a refusal still counts.
pub(crate) const STILL_REFUSED: TimeDelta = TimeDelta::minutes(10);

/// Whether two pods are alike.
pub type Kinship = fn(&Pod, &Pod) -> bool;

/// A Ready Node that cannot start the pods it is given, for long and still.
///
/// The kubelet tries again every few seconds and says so every time, or every five minutes once its events are
/// throttled (kubernetes v1.36.3 client-go tools/record/events_cache.go). A pod that waits for a warm address is served
/// within seconds.
pub(super) fn refused_pods_wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let (containers, refusals): (Vec<&Event>, Vec<&Event>) = cluster
        .pod_events_on(node.name())
        .filter(|event| refuses_container(event) || refused_sandbox(event).is_some())
        .partition(|event| refuses_container(event));
    let pods = cluster.pods_on(node.name());
    let starts_elsewhere = |pod: &Pod, is_alike: Kinship| starts_elsewhere(cluster, node, pod, is_alike);
    let waits = |newest: &Event, first: DateTime<Utc>, because: &'static str| {
        let object = format!("Event Pod/{}", newest.involved_object.name);
        let evidence = Evidence::new(object, "message", newest.said(), because);
        let wait = Wait::new(Stage::Ready, first, t.ready * 2, t, evidence);
        Wait { proven: wait.patience, symptom: Symptom::PodsRefused, ..wait }
    };
    let is_recent = |e: &&&Event| e.last_seen().is_some_and(|at| now - at <= STILL_REFUSED);
    let Some(newest) = refusals.iter().filter(is_recent).max_by_key(|e| e.last_seen()) else {
        if node.is_windows() {
            return None;
        }
        let recent: Vec<&Event> = containers.iter().filter(is_recent).copied().collect();
        let (newest, first) = containers_refused(&recent, pods, starts_elsewhere)?;
        return Some(waits(
            newest,
            first,
            "the Node is Ready, and its runtime makes no container of pods that run elsewhere",
        ));
    };
    let of_node = refusals.iter().any(|e| matches!(refused_sandbox(e), Some(Sandbox::Address | Sandbox::Image)));
    let (newest, first) = if of_node || node.is_windows() {
        (*newest, refusals.iter().filter_map(|e| e.first_timestamp.or(e.last_seen())).min()?)
    } else {
        let fails = |set: &str| pods_of(cluster, node, set).any(|pod| !pod.is_ready() && pod.trouble().is_some());
        refused_together(&refusals, pods, starts_elsewhere, fails, now)?
    };
    let wait =
        waits(newest, first, "the Node is Ready, and its kubelet cannot start the pods that are scheduled there");
    Some(if of_node || !node.is_windows() { wait } else { wait.only_with_proof() })
}

fn pods_of<'c>(cluster: &'c ClusterState, node: &Node, set: &str) -> impl Iterator<Item = &'c Pod> {
    cluster.pods_on(node.name()).filter(move |pod| pod.daemon_set() == Some(set))
}

/// Whether a pod like this one has started on another Node.
fn starts_elsewhere(cluster: &ClusterState, node: &Node, pod: &Pod, is_alike: Kinship) -> bool {
    let mut alike = cluster.pods_in(pod.metadata.namespace.as_deref().unwrap_or_default());
    let starts = |other: &Pod| other.node() != node.name() && (other.has_started() || other.is_ready());
    alike.any(|other| starts(other) && is_alike(pod, other))
}

/// A network or a sandbox may be refused to one pod for reasons of its own. It is the Node's affair where none that
/// came with it or later has started, and pods of two owners wait, or one of whose owner others run elsewhere, or the
/// DaemonSet that refuses it fails there itself.
fn refused_together<'e>(
    refusals: &[&'e Event],
    pods: impl Iterator<Item = &'e Pod>,
    starts_elsewhere: impl Fn(&Pod, Kinship) -> bool,
    fails: impl Fn(&str) -> bool,
    now: DateTime<Utc>,
) -> Option<(&'e Event, DateTime<Utc>)> {
    // One in the network of the host needs no plugin.
    let of_network = refusals.iter().all(|e| refused_sandbox(e) == Some(Sandbox::Network));
    let of_pod = |pod: &Pod| {
        let own = refusals.iter().copied().filter(|e| e.names(&pod.metadata) && waits_for_sandbox(pod, e));
        own.filter(|e| e.last_seen().is_some_and(|at| now - at <= STILL_REFUSED)).max_by_key(|e| e.last_seen())
    };
    let (started, waiting): (Vec<&Pod>, Vec<&Pod>) = pods
        .filter(|pod| pod.metadata.deletion_timestamp.is_none() && !(of_network && pod.spec.host_network))
        .partition(|pod| (pod.has_started() || pod.is_ready()) && of_pod(pod).is_none());
    let waiting: Vec<(&Pod, &Event)> = waiting.into_iter().filter_map(|pod| Some((pod, of_pod(pod)?))).collect();
    // After a reboot each pod needs another sandbox, so its time begins again when it has stopped.
    let restarted = waiting.iter().any(|(pod, _)| pod.has_started());
    let came_at = |pod: &Pod| pod.stopped_at().filter(|_| restarted).or(pod.metadata.creation_timestamp);
    let came = waiting.iter().filter_map(|(pod, _)| came_at(pod)).min()?;
    let refused = waiting.iter().filter_map(|(_, event)| event.first_timestamp.or(event.last_seen())).min()?;
    // The pod of an agent that joins the chain of plugins is served before it.
    let is_served = |pod: &&Pod| came_at(pod) >= Some(came) && pod.ready_since().is_none_or(|since| since >= refused);
    if started.iter().any(is_served) {
        return None;
    }
    let (first, _) = waiting.first()?;
    let of_many = waiting.iter().any(|(pod, _)| pod.workload() != first.workload());
    let by_failing = |refusal: &Event| network_agents::that_refuses(&refusal.message).is_some_and(&fails);
    let of_node = of_many
        || waiting.iter().any(|(pod, _)| starts_elsewhere(pod, Pod::is_same_workload))
        || waiting.iter().any(|(_, refusal)| by_failing(refusal));
    if !of_node {
        return None;
    }
    let since =
        waiting.iter().filter_map(|(pod, e)| e.first_timestamp.or(e.last_seen()).max(pod.stopped_at())).min()?;
    let (_, newest) = waiting.into_iter().max_by_key(|(_, event)| event.last_seen())?;
    Some((newest, since))
}

/// Whether a refused sandbox is one that the pod needs now: it has never had any, or has lost it, as all do when their
/// machine restarts.
pub fn waits_for_sandbox(pod: &Pod, refusal: &Event) -> bool {
    !pod.is_ready() && !pod.runs() && refusal.last_seen() > pod.stopped_at()
}

/// A container may be refused to one pod for what is in its text. It is the Node's affair where two pods or more are
/// refused theirs in the same way, none that came with them or later has started, and a pod of the same text runs
/// elsewhere.
fn containers_refused<'e>(
    refusals: &[&'e Event],
    pods: impl Iterator<Item = &'e Pod>,
    starts_elsewhere: impl Fn(&Pod, Kinship) -> bool,
) -> Option<(&'e Event, DateTime<Utc>)> {
    if refusals.is_empty() {
        return None;
    }
    let (started, waiting): (Vec<&Pod>, Vec<&Pod>) = pods
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .partition(|pod| pod.has_started() || pod.is_ready());
    let of_pod = |pod: &Pod| refusals.iter().copied().filter(|e| e.names(&pod.metadata)).max_by_key(|e| e.last_seen());
    let waiting: Vec<(&Pod, &str, &Event)> =
        waiting.into_iter().filter_map(|pod| Some((pod, pod.refused_container()?, of_pod(pod)?))).collect();
    let came = waiting.iter().filter_map(|(pod, ..)| pod.metadata.creation_timestamp).min()?;
    // Names of temporary mounts, snapshots and containers are others each time.
    let words = |said: &str| said.chars().filter(|c| c.is_alphabetic()).collect::<String>();
    let (_, first, _) = waiting.first()?;
    let alike = waiting.len() >= 2 && waiting.iter().all(|(_, said, _)| words(said) == words(first));
    let any_starts = started.iter().any(|pod| pod.metadata.creation_timestamp >= Some(came));
    if !alike || any_starts || !waiting.iter().any(|(pod, ..)| starts_elsewhere(pod, Pod::is_same_text)) {
        return None;
    }
    let since = waiting.iter().filter_map(|(.., event)| event.first_timestamp.or(event.last_seen())).min()?;
    let (.., newest) = waiting.into_iter().max_by_key(|(.., event)| event.last_seen())?;
    Some((newest, since))
}
