//! Pods that Karpenter makes one machine after the other for, none of which has room for them: a DaemonSet takes it
//! that Karpenter did not count, or the machine has less than Karpenter reckons.

use super::pod_requests::takes;
use crate::case::unplaced::{is_of_instance, may_have, meets};
use crate::cluster_state::ClusterState;
use crate::objects::{DaemonSet, Event, Node, NodeClaim, NodePool, Pod, PodSpec, quantity};
use crate::upstream::karpenter::Karpenter;
use crate::upstream::overhead::MIB;
use crate::upstream::unplaced::{is_refusal, nominated};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// A machine that was made for a pod, and is too small for it.
#[derive(Debug)]
pub struct UndersizedNode<'w> {
    pub pod: &'w Pod,
    pub claim: &'w NodeClaim,
    pub node: &'w Node,
    /// Since when it has taken pods.
    pub since: DateTime<Utc>,
    /// How many machines Karpenter has made for the pod, as far as is still told.
    pub made: usize,
    /// What is short.
    pub resource: &'static str,
    pub asked: f64,
    /// What is left of it.
    pub free: f64,
    pub why: TooSmall<'w>,
}

/// Why Karpenter thought that there would be room.
#[derive(Debug, Clone, Copy)]
pub enum TooSmall<'w> {
    /// Without this DaemonSet there would be, and it asks for a label that no NodePool gives and that machines only
    /// have later.
    Uncounted { set: &'w DaemonSet, taken: f64, label: &'w str },
    /// The NodeClaim says so much, and the Node has less.
    /// Source: core pkg/controllers/nodeclaim/lifecycle/launch.go `PopulateNodeClaimDetails` (v1.0.5, v1.14.1).
    Overrated { reckoned: f64, room: f64 },
}

impl UndersizedNode<'_> {
    /// Formats an amount of the missing resource in its usual unit: millicores for CPU, Mi for the rest.
    pub fn amount(&self, quantity: f64) -> String {
        match self.resource {
            "cpu" => format!("{:.0}m", quantity * 1000.0),
            _ => format!("{:.0}Mi", quantity / MIB),
        }
    }
}

/// A second machine may only have come for the sake of pods that were quicker.
pub(super) const IN_A_ROW: usize = 3;

const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// A label that the DaemonSet asks for, and that Karpenter does not expect of the NodePool's machines.
/// Source: core pkg/controllers/provisioning/scheduling/scheduler.go `isDaemonPodCompatible` (v1.14.1),
/// `getDaemonOverhead` (v1.0.5).
fn unexpected<'s>(karpenter: &Karpenter, pool: &NodePool, spec: &'s PodSpec) -> Option<&'s str> {
    let expects = |key: &str| is_of_instance(key) || is_alias(key) || karpenter.counts_on_label(key);
    let mut selected = spec.node_selector.iter();
    if let Some((key, _)) = selected.find(|(key, value)| !expects(key) && !may_have(pool, key, Some(value))) {
        return Some(key);
    }
    let required = &spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution;
    // One term that is met is enough.
    let unmet = required.node_selector_terms.iter().map(|term| {
        let mut wanted = term.match_expressions.iter();
        wanted.find(|r| !expects(&r.key) && !meets(pool, r)).map(|r| r.key.as_str())
    });
    unmet.collect::<Option<Vec<&str>>>()?.first().copied()
}

/// Older names of labels that Karpenter expects, and those that each Node has.
/// Source: core pkg/apis/v1/labels.go `NormalizedLabels`, `WellKnownLabels` (v1.14.1).
fn is_alias(key: &str) -> bool {
    matches!(
        key,
        "beta.kubernetes.io/arch"
            | "beta.kubernetes.io/instance-type"
            | "beta.kubernetes.io/os"
            | "failure-domain.beta.kubernetes.io/region"
            | "failure-domain.beta.kubernetes.io/zone"
            | "kubernetes.io/hostname"
            | "node.kubernetes.io/windows-build"
    )
}

/// When Karpenter first expected the pod on each of the machines that it made for it.
pub(super) fn machines<'w>(cluster: &'w ClusterState, pod: &'w Pod) -> BTreeMap<&'w str, DateTime<Utc>> {
    let mut machines = BTreeMap::new();
    for event in cluster.events_about_pod(pod) {
        let first = event.first_timestamp.or(event.event_time).or(event.last_seen());
        let Some((claim, first)) = nominated(event).zip(first) else { continue };
        let known = machines.entry(claim).or_insert(first);
        *known = first.min(*known);
    }
    machines
}

/// Whether the scheduler has found no room for the pod since then. It writes the event again at each attempt.
/// Source: kubernetes v1.36.3 pkg/scheduler/schedule_one.go `handleSchedulingFailure` (FailedScheduling).
fn refused_since(cluster: &ClusterState, pod: &Pod, since: DateTime<Utc>) -> bool {
    let is_schedulers = |event: &&Event| event.reason == "FailedScheduling" && !is_refusal(event);
    cluster.events_about_pod(pod).filter(is_schedulers).any(|event| event.last_seen() > Some(since))
}

/// The first machine of the NodePool that was made for the pod and has taken pods, before Karpenter made another. If
/// each earlier one was removed as empty, only the last one is left.
pub(super) fn undersized_node<'w>(
    cluster: &'w ClusterState,
    pool: &NodePool,
    pod: &'w Pod,
) -> Option<UndersizedNode<'w>> {
    let machines = machines(cluster, pod);
    let newest = machines.values().max().filter(|_| machines.len() >= IN_A_ROW)?;
    let of_pool =
        |claim: &&NodeClaim| claim.node_pool() == Some(pool.name()) && claim.metadata.deletion_timestamp.is_none();
    let claims = machines.keys().filter_map(|name| cluster.claim(name)).filter(of_pool);
    let ready = claims.filter_map(|claim| {
        let since = claim.true_since("Initialized")?;
        if since >= *newest && !refused_since(cluster, pod, since) {
            return None;
        }
        let nodes = cluster.nodes_of(claim);
        Some((since, claim, *nodes.first().filter(|node| node.is_ready())?))
    });
    let mut ready: Vec<(DateTime<Utc>, &NodeClaim, &Node)> = ready.collect();
    ready.sort_by_key(|(since, claim, _)| (*since, claim.name()));
    ready.into_iter().find_map(|(since, claim, node)| {
        let (resource, asked, free, why) = too_small(cluster, pool, pod, claim, node)?;
        Some(UndersizedNode { pod, claim, node, since, made: machines.len(), resource, asked, free, why })
    })
}

/// The resource, what is asked of it, what is free, and why.
fn too_small<'w>(
    cluster: &'w ClusterState,
    pool: &NodePool,
    pod: &Pod,
    claim: &NodeClaim,
    node: &Node,
) -> Option<(&'static str, f64, f64, TooSmall<'w>)> {
    let karpenter = cluster.karpenter()?;
    let there: Vec<&Pod> =
        cluster.pods_on(node.name()).filter(|pod| !pod.has_ended() && !pod.spec.node_name.is_empty()).collect();
    // Of a pod of a DaemonSet, the DaemonSet and the label.
    let uncounted = |pod: &&Pod| {
        let name = pod.daemon_set()?;
        let is_its = |set: &&DaemonSet| set.metadata.name == *name && set.metadata.namespace == pod.metadata.namespace;
        let set = cluster.daemon_sets().find(is_its)?;
        Some((set, unexpected(karpenter, pool, &set.spec.template.spec)?))
    };
    RESOURCES.into_iter().find_map(|resource| {
        let room = quantity::parse(node.status.allocatable.get(resource)?)?;
        let (asked, at_most) = takes(pod, resource);
        let free = room - there.iter().map(|pod| takes(pod, resource).0).sum::<f64>();
        if free >= asked {
            return None;
        }
        let counted = || there.iter().filter(|pod| uncounted(pod).is_none());
        let has_room = |room: f64| room - counted().map(|pod| takes(pod, resource).1).sum::<f64>() >= at_most;
        let largest = |a: &(f64, _), b: &(f64, _)| a.0.total_cmp(&b.0);
        let of_sets = there.iter().filter_map(|pod| Some((takes(pod, resource).0, uncounted(pod)?)));
        let set = of_sets.max_by(largest).filter(|_| has_room(room));
        let why = if let Some((taken, (set, label))) = set {
            TooSmall::Uncounted { set, taken, label }
        } else {
            let reckoned = quantity::parse(claim.status.allocatable.get(resource)?)?;
            has_room(reckoned).then_some(TooSmall::Overrated { reckoned, room })?
        };
        Some((resource, asked, free, why))
    })
}
