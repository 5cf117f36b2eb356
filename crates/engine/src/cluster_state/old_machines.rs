//! Machines of Karpenter before 0.28, of which a Node is all there is.
//!
//! Karpenter made the Node together with the instance, and the kubelet found it there: until it has reported, there is
//! none in the sense of later versions. As Karpenter 0.28 to 0.32 did with such Nodes, each is taken for a NodeClaim.
//! Sources: core pkg/controllers/state/cluster.go, pkg/utils/machine `NewFromNode` (v0.28.0), pkg/utils/nodeclaim
//! `NewFromNode` (v0.32.1); v0.28.0 pkg/controllers/provisioning/provisioner.go makes Machines in place of Nodes.

use super::ClusterState;
use crate::objects::former::{NODE, V1ALPHA1, V1ALPHA5};
use crate::objects::intern::Interned;
use crate::objects::{Condition, Node, NodeClaim, NodePool, conditions};
use crate::upstream::karpenter::{NOT_READY_TAINT, TERMINATION_FINALIZER, Version};
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};

/// Karpenter sets it on usable Nodes since 0.11. Before that, Nodes that were not usable yet had a taint.
/// Source: karpenter-provider-aws pkg/controllers/node/initialization.go (v0.10.0, v0.11.0).
const INITIALIZED_LABEL: &str = "karpenter.sh/initialized";
const SINCE_LABEL: Version = Version(0, 11, 0);
const SINCE_MACHINES: Version = Version(0, 28, 0);
/// Reads neither Provisioners nor Machines. Source: core pkg/apis/crds, pkg/controllers (v0.32.1, v0.33.0).
const WITHOUT_FORMER: Version = Version(0, 33, 0);

#[derive(Debug, Default)]
pub(super) struct OldMachines {
    nodes: BTreeMap<Interned, Box<Node>>,
    /// Nodes that the state treats as NodeClaims.
    claimed: BTreeSet<Interned>,
}

impl ClusterState {
    pub(super) fn has_old_machines(&self) -> bool {
        !self.old_machines.claimed.is_empty()
    }

    /// Whether this Karpenter has no object for a machine except its Node.
    pub fn is_before_machines(&self) -> bool {
        self.has_old_machines() || self.version().is_some_and(|version| version < SINCE_MACHINES)
    }

    /// Whether an object of this version is only what an upgrade left: the Karpenter that is here does not read it.
    pub fn is_left_behind(&self, api_version: &str) -> bool {
        let is_later = |version: &str| version == "karpenter.sh/v1";
        let has_later = || {
            self.pools.values().any(|pool| is_later(&pool.api_version))
                || self.claims.values().any(|claim| is_later(&claim.api_version))
        };
        matches!(api_version, V1ALPHA5 | V1ALPHA1)
            && self.version().map_or_else(has_later, |version| version >= WITHOUT_FORMER)
    }

    /// The number of objects that are left behind.
    pub fn left_behind(&self) -> usize {
        let claims = self.claims.values().map(|claim| &*claim.api_version);
        let pools = self.pools.values().map(|pool| &*pool.api_version);
        let classes = self.classes.values().flat_map(BTreeMap::values).map(|facts| &*facts.class.api_version);
        claims.chain(pools).chain(classes).filter(|version| self.is_left_behind(version)).count()
    }

    fn version(&self) -> Option<Version> {
        self.karpenter.values().map(|karpenter| karpenter.version).max()
    }

    /// Keeps a Node that may represent a machine of that time.
    pub(super) fn note_old_machine(&mut self, node: Node, now: DateTime<Utc>) {
        let name = node.metadata.name.clone();
        if node.metadata.finalizers.iter().any(|own| *own == TERMINATION_FINALIZER) {
            self.old_machines.nodes.insert(name.clone(), Box::new(node));
            self.renew_old_machine(&name, now);
        }
    }

    /// Decides again which Nodes are machines, after a change of a Provisioner, a Machine or Karpenter itself.
    pub(super) fn renew_old_machines(&mut self, now: DateTime<Utc>) {
        let names: Vec<Interned> = self.old_machines.nodes.keys().cloned().collect();
        for name in &names {
            self.renew_old_machine(name, now);
        }
    }

    fn renew_old_machine(&mut self, name: &Interned, now: DateTime<Utc>) {
        let Some(node) = self.old_machines.nodes.get(name) else { return };
        let version = self.version();
        let is_old = version.is_none_or(|version| version < SINCE_MACHINES)
            && self.claims.len() == self.old_machines.claimed.len();
        let pool = node.metadata.label("karpenter.sh/nodepool").and_then(|pool| self.pools.get(pool));
        match pool.filter(|pool| is_old && pool.is_provisioner()) {
            Some(pool) => {
                let claim = claim_of(node, pool, version);
                if !has_reported(node) && self.nodes.remove(name).is_some() {
                    self.nodes_by_provider_id.remove(&node.spec.provider_id, name);
                }
                self.old_machines.claimed.insert(name.clone());
                self.apply_claim(claim, now);
            }
            None if self.old_machines.claimed.remove(name) => {
                if let Some(claim) = self.claims.remove(name) {
                    self.unindex_claim(&claim);
                    self.reason_changes.remove(name);
                }
                if let Some(node) = self.old_machines.nodes.get(name).map(|node| Node::clone(node)) {
                    self.apply_node(node);
                }
            }
            None => {}
        }
    }

    pub(super) fn forget_old_machine(&mut self, name: &str) {
        self.old_machines.nodes.remove(name);
        if self.old_machines.claimed.remove(name)
            && let Some(claim) = self.claims.remove(name)
        {
            self.unindex_claim(&claim);
        }
    }
}

/// Whether its kubelet has ever reported.
/// Source: kubernetes v1.23 pkg/controller/nodelifecycle `tryUpdateNodeHealth`.
fn has_reported(node: &Node) -> bool {
    conditions(&node.status.conditions, "Ready").is_some_and(|ready| ready.reason != "NodeStatusNeverUpdated")
}

/// The devices of the instance type, as the labels of its Node have it, each with the label that counts them: Karpenter
/// waited for all of them, whoever asked for one.
/// Sources: core pkg/controllers/node/initialization.go `IsExtendedResourceRegistered` (v0.27.5);
/// karpenter-provider-aws pkg/providers/instancetype/types.go `computeRequirements`, `computeCapacity` (v0.27.5).
pub fn devices(node: &Node) -> Vec<(&'static str, &str, &'static str)> {
    const GPUS: &str = "karpenter.k8s.aws/instance-gpu-count";
    const ACCELERATORS: &str = "karpenter.k8s.aws/instance-accelerator-count";
    let of = |label: &str| node.metadata.label(label);
    let gpu = match of("karpenter.k8s.aws/instance-gpu-manufacturer") {
        Some("nvidia") => Some("nvidia.com/gpu"),
        Some("amd") => Some("amd.com/gpu"),
        _ => None,
    };
    let neuron = of("karpenter.k8s.aws/instance-accelerator-manufacturer").filter(|by| *by == "aws");
    let accelerator = neuron.map(|_| "aws.amazon.com/neuron");
    let counted = [(gpu, GPUS), (accelerator, ACCELERATORS)].into_iter();
    counted.filter_map(|(name, label)| Some((name?, of(label)?, label))).collect()
}

fn claim_of(node: &Node, pool: &NodePool, version: Option<Version>) -> NodeClaim {
    let of_pool = &pool.spec.template.spec;
    let created = node.metadata.creation_timestamp;
    let ready = node.condition("Ready");
    let condition = |type_: &str, status: &str, reason: &str, at| Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        last_transition_time: at,
        ..Condition::default()
    };
    let label = node.metadata.label(INITIALIZED_LABEL).is_some();
    let by_label = version.is_some_and(|version| version >= SINCE_LABEL);
    let is_usable = label || !by_label && node.is_ready() && node.taint(NOT_READY_TAINT).is_none();
    let registered = match ready {
        Some(_) if is_usable => condition("Registered", "True", "Registered", created),
        Some(ready) if has_reported(node) => condition("Registered", "True", "Registered", ready.last_transition_time),
        _ => Condition {
            message: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
            ..condition("Registered", "Unknown", ready.map_or("", |ready| &ready.reason), created)
        },
    };
    let initialized = if is_usable {
        condition("Initialized", "True", "Initialized", created)
    } else {
        let reason = if node.is_ready() { "" } else { "NodeNotReady" };
        condition("Initialized", "Unknown", reason, None)
    };
    let mut claim = NodeClaim { api_version: NODE.into(), metadata: node.metadata.clone(), ..NodeClaim::default() };
    claim.metadata.owner_references = Box::default();
    claim.spec.node_class_ref = of_pool.node_class_ref.clone();
    claim.spec.requirements.clone_from(&of_pool.requirements);
    claim.spec.taints.clone_from(&of_pool.taints);
    claim.spec.startup_taints.clone_from(&of_pool.startup_taints);
    claim.spec.resources.requests = devices(node).iter().map(|(name, count, _)| (*name, *count)).collect();
    claim.status.conditions = [condition("Launched", "True", "Launched", created), registered, initialized].into();
    claim.status.provider_id = node.spec.provider_id.clone();
    claim.status.node_name = node.metadata.name.clone();
    claim
}
