//! Nodes of one instance type that run out of memory under the agents of every node, which larger types can carry.

use crate::cluster_state::memo::Memo;
use crate::objects::{Event, Pod};
use crate::rules::prelude::*;
use std::collections::BTreeMap;

const TYPE: &str = "node.kubernetes.io/instance-type";
/// In MiB. Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `computeRequirements`.
const MEMORY: &str = "karpenter.k8s.aws/instance-memory";

/// The nodes of a NodePool that have one instance type.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    memory: u32,
    all: u32,
    ready: u32,
    out_of_memory: u32,
}

static BY_TYPE: Memo<BTreeMap<String, Tally>> = Memo::new("nodes of a NodePool that ran out of memory, by type");

#[derive(Debug)]
pub(super) struct SmallType<'w> {
    pool: &'w str,
    type_: &'w str,
    memory: u32,
    nodes: u32,
    /// The DaemonSet of which the kernel killed a process.
    set: &'w str,
}

/// One node may have a pod that takes too much.
const SEVERAL: u32 = 2;

pub(super) fn small_type<'w>(case: &Case<'w>) -> Option<SmallType<'w>> {
    let pool = case.claim?.node_pool()?;
    let type_ = case.node?.metadata.label(TYPE)?;
    let set = killed_agent(case)?;
    let by_type = case.cluster.once(&BY_TYPE, pool, || by_type(case, pool));
    let own = by_type.get(type_).filter(|own| own.out_of_memory >= SEVERAL && own.out_of_memory == own.all)?;
    let mut others = by_type.iter().filter(|(other, _)| *other != type_).map(|(_, tally)| tally);
    let is_alone = others.clone().all(|other| other.out_of_memory == 0);
    let larger_works = others.any(|other| other.ready > 0 && other.memory > own.memory);
    (is_alone && larger_works).then_some(SmallType { pool, type_, memory: own.memory, nodes: own.all, set })
}

fn by_type(case: &Case, pool: &str) -> BTreeMap<String, Tally> {
    let mut by_type: BTreeMap<String, Tally> = BTreeMap::new();
    for claim in case.cluster.claims_of_pool(pool) {
        let memory = claim.fixed(MEMORY).and_then(|memory| memory.parse().ok());
        let nodes = case.cluster.nodes_of(claim);
        let Some(((node, memory), type_)) = nodes.first().zip(memory).zip(claim.metadata.label(TYPE)) else { continue };
        let tally = by_type.entry(type_.to_owned()).or_default();
        tally.memory = memory;
        tally.all += 1;
        tally.ready += u32::from(node.is_ready());
        let ran_out = case.cluster.events("Node", node.name()).any(|event| event.reason == "SystemOOM");
        tally.out_of_memory += u32::from(ran_out);
    }
    by_type
}

/// The DaemonSet on the node that is called as the killed process: each node runs it.
/// Source: kubernetes v1.36.3 pkg/kubelet/oom/oom_watcher_linux.go `Start`.
fn killed_agent<'w>(case: &Case<'w>) -> Option<&'w str> {
    let killed = case.events().filter(|event| event.reason == "SystemOOM").filter_map(victim);
    let killed: Vec<&str> = killed.collect();
    case.pods().filter_map(Pod::daemon_set).find(|set| killed.contains(set))
}

fn victim(event: &Event) -> Option<&str> {
    event.message.split_once("victim process: ")?.1.split(',').next()
}

impl SmallType<'_> {
    pub(super) fn in_words(&self) -> String {
        let Self { pool, type_, memory, nodes, set } = self;
        format!(
            " All {nodes} nodes of type {type_} ({memory} MiB) in NodePool {pool} did, and none of its larger types. \
             The kernel killed a process of DaemonSet {set}."
        )
    }

    pub(super) fn onto(&self, finding: Finding) -> Finding {
        let Self { pool, type_, memory, set, .. } = self;
        finding
            .with(Evidence::new(
                format!("NodePool/{pool}"),
                "spec.template.spec.requirements",
                format!("they allow {type_}"),
                format!("too small for the DaemonSets of the cluster, such as {set}, and the pods beside them"),
            ))
            .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"))
            .change(
                format!("Require more memory for new nodes ({MEMORY} Gt {memory})"),
                format!("kubectl edit nodepool {pool}"),
            )
    }
}
