//! Pods of a Ready Node that are out of reach since an agent of their network was replaced there, while pods of the
//! same text are well where its former revision runs.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::case::unanswered::{began, earliest, still_unanswered, unanswered};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Event, Node, Pod};
use crate::upstream::network_agents::serves_pods;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How soon after the agent it shows what the agent has broken: some probes fail before a pod is called unready.
const SOON: TimeDelta = TimeDelta::minutes(3);

/// The revision of its DaemonSet that a pod is of.
fn revision(pod: &Pod) -> Option<&str> {
    pod.metadata.label("controller-revision-hash")
}

/// One Node with the agent.
#[derive(Debug)]
struct OnNode {
    revision: String,
    /// Pods that nobody reaches: the owner whose text they are of, and the workload.
    out_of_reach: Vec<(String, String)>,
    /// Whether that began soon after the agent's pod came.
    since_the_agent: bool,
    /// The owners of pods that are Ready.
    ready: BTreeSet<String>,
}

fn owner(pod: &Pod) -> Option<String> {
    let owner = pod.metadata.owner_references.first()?;
    Some(format!("{} {} {}", pod.metadata.namespace.as_deref().unwrap_or_default(), owner.kind, owner.name))
}

/// How pods do on all Nodes with an agent.
fn on_nodes(cluster: &ClusterState, set: &str) -> Arc<Vec<OnNode>> {
    static ON_NODES: Memo<Vec<OnNode>> = Memo::new("how pods do by the revision of an agent");
    cluster.once(&ON_NODES, set, || {
        let on_node = |node: &Node| {
            let pods =
                || cluster.pods_on(node.name()).filter(|pod| !pod.spec.host_network && pod.daemon_set().is_none());
            let agent = cluster.pods_on(node.name()).find(|pod| pod.daemon_set() == Some(set))?;
            let unanswered = || pods().filter_map(|pod| Some((pod, unanswered(cluster, pod)?)));
            let of_pod = |(pod, _): (&Pod, _)| Some((owner(pod)?, format!("{:?}", pod.workload())));
            let first = unanswered().filter_map(|(_, event)| began(event)).min();
            Some(OnNode {
                revision: revision(agent)?.to_owned(),
                out_of_reach: unanswered().filter_map(of_pod).collect(),
                since_the_agent: is_soon(agent, first),
                ready: pods().filter(|pod| pod.is_ready()).filter_map(owner).collect(),
            })
        };
        cluster.nodes().filter_map(on_node).collect()
    })
}

fn is_soon(agent: &Pod, first: Option<DateTime<Utc>>) -> bool {
    let times = agent.metadata.creation_timestamp.zip(first);
    times.is_some_and(|(came, first)| first >= came && first - came <= SOON)
}

/// An agent whose newer revision leaves pods out of reach.
#[derive(Debug, Clone, Copy)]
pub struct ByRevision<'w> {
    pub agent: &'w Pod,
    /// Its DaemonSet.
    pub set: &'w str,
    pub pod: &'w Pod,
    pub event: &'w Event,
    /// Nodes with the newer revision on which pods are out of reach.
    pub cut: usize,
    /// Nodes with another revision, on which none is.
    pub well: usize,
    since: DateTime<Utc>,
}

pub fn by_revision<'w>(cluster: &'w ClusterState, node: &Node, now: DateTime<Utc>) -> Option<ByRevision<'w>> {
    let (pod, event) = earliest(still_unanswered(cluster, node, now))?;
    let since = began(event)?;
    cluster.pods_on(node.name()).find_map(|agent| {
        let set = agent.daemon_set().filter(|set| serves_pods(set) && is_soon(agent, Some(since)))?;
        let all = on_nodes(cluster, set);
        let own = revision(agent)?;
        let (newer, older): (Vec<&OnNode>, Vec<&OnNode>) = all.iter().partition(|on_node| on_node.revision == own);
        let cut: Vec<&&OnNode> = newer.iter().filter(|on_node| !on_node.out_of_reach.is_empty()).collect();
        let owners: BTreeSet<&String> =
            cut.iter().flat_map(|on_node| &on_node.out_of_reach).map(|(owner, _)| owner).collect();
        let workloads: BTreeSet<&String> =
            cut.iter().flat_map(|on_node| &on_node.out_of_reach).map(|(_, of)| of).collect();
        let starts = |on_node: &&OnNode| owners.iter().any(|owner| on_node.ready.contains(*owner));
        // One Node or one workload may fail by itself.
        let together = cut.len() >= 2 && workloads.len() >= 2 && cut.iter().all(|on_node| on_node.since_the_agent);
        let nowhere_here = !newer.iter().any(starts);
        let well_there = older.iter().all(|on_node| on_node.out_of_reach.is_empty()) && older.iter().any(starts);
        (together && nowhere_here && well_there).then_some(ByRevision {
            agent,
            set,
            pod,
            event,
            cut: cut.len(),
            well: older.len(),
            since,
        })
    })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let found = by_revision(cluster, node, now)?;
    let because = "the Node is Ready, and its pods are out of reach since an agent of their network was replaced there";
    let evidence =
        Evidence::new(format!("Event Pod/{}", found.pod.metadata.name), "message", found.event.said(), because);
    let wait = Wait::new(Stage::Ready, found.since, t.ready, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::OutOfReach, ..wait })
}
