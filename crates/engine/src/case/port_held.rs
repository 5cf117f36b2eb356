//! Pods that Karpenter makes one machine after the other for, while a DaemonSet holds the port that they ask for on
//! each.

use super::judging::Judging;
use super::stage::Wait;
use super::undersized_nodes::{IN_A_ROW, machines};
use super::{unplaced, waiting_pods};
use crate::case::pool_wait;
use crate::cluster_state::ClusterState;
use crate::objects::{Node, NodePool, Pod};
use chrono::{DateTime, Utc};

/// A port of the Node that a DaemonSet holds on a machine which was made for the pod.
#[derive(Debug)]
pub struct PortHeld<'w> {
    pub pod: &'w Pod,
    pub port: u16,
    /// The DaemonSet's name.
    pub set: &'w str,
    /// Its pod there.
    pub holder: &'w Pod,
    pub node: &'w Node,
    /// When Karpenter first expected the pod on a machine, as far as is still told.
    pub since: DateTime<Utc>,
    /// How many machines it has made for the pod, as far as is still told.
    pub made: usize,
}

/// Source: kubernetes v1.36.3 pkg/scheduler/framework/plugins/nodeports/node_ports.go `ErrReason`.
pub const NO_FREE_PORT: &str = "didn't have free ports for the requested pod ports";

pub fn port_held<'w>(cluster: &'w ClusterState, pool: &'w NodePool) -> Option<PortHeld<'w>> {
    let is_refused = |pod: &&Pod| pod.unscheduled().is_some_and(|said| said.contains(NO_FREE_PORT));
    let waiting = waiting_pods(cluster).filter(is_refused).filter(|pod| unplaced::admits(pool, pod));
    let mut waiting: Vec<&Pod> = waiting.collect();
    waiting.sort_by_key(|pod| (pod.metadata.creation_timestamp, &pod.metadata.name));
    waiting.into_iter().find_map(|pod| {
        let machines = machines(cluster, pod);
        let since = machines.values().min().copied().filter(|_| machines.len() >= IN_A_ROW)?;
        let claims = machines.keys().filter_map(|name| cluster.claim(name));
        let claims = claims.filter(|claim| claim.node_pool() == Some(pool.name()));
        let mut nodes = claims.flat_map(|claim| cluster.nodes_of(claim)).filter(|node| node.is_ready());
        nodes.find_map(|node| {
            let (port, holder) = holder(cluster, node, pod)?;
            let set = holder.daemon_set()?;
            Some(PortHeld { pod, port, set, holder, node, since, made: machines.len() })
        })
    })
}

/// A port of the Node that the pod asks for, and the pod there that has it.
pub fn holder<'w>(cluster: &'w ClusterState, node: &Node, pod: &Pod) -> Option<(u16, &'w Pod)> {
    let mut on_node: Vec<&Pod> = cluster.pods_on(node.name()).collect();
    // One of a DaemonSet is on every other Node too.
    on_node.sort_by_key(|holder| (holder.daemon_set().is_none(), &holder.metadata.name));
    let port_of = |holder: &Pod| pod.host_ports().find(|port| holder.takes_host_port(*port));
    on_node.into_iter().find_map(|holder| Some((port_of(holder)?, holder)))
}

pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let found = port_held(judging.cluster, pool)?;
    pool_wait::port_held_wait(found.pod, found.since, judging.thresholds)
}
