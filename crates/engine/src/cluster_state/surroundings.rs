//! What an object of the configuration is judged with before it is stored: the configuration of the cluster, and a few
//! machines that joined. It is a copy, for a thread beside the one that owns the cluster.

use super::looked_up::LookedUp;
use super::{Availability, AwsAuthFacts, ClusterState, Key};
use crate::cluster_state::aws::Aws;
use crate::objects::input::{Input, Object};
use crate::objects::{
    ApiServerFacts, CustomResourceDefinition, DaemonSet, EniConfig, Node, NodeClaim, NodeClass, NodeOverlay, NodePool,
    ReviewStatus, ServiceAccount,
};
use crate::upstream::karpenter::Karpenter;
use crate::upstream::text_hash::HashKey;
use chrono::{DateTime, Utc};
use readers::aws_auth::identity::Identity;
use std::collections::BTreeMap;

/// The configuration of a cluster without its machines. Of each node class it has at most two machines that joined, and
/// of each NodePool one machine.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    classes: Vec<NodeClass>,
    pools: Vec<NodePool>,
    aws_auth: Option<AwsAuthFacts>,
    machines: Vec<(NodeClaim, Vec<Node>)>,
    karpenter: BTreeMap<Key, Karpenter>,
    daemon_sets: BTreeMap<Key, DaemonSet>,
    custom_resources: BTreeMap<String, CustomResourceDefinition>,
    service_accounts: BTreeMap<Key, ServiceAccount>,
    eni_configs: BTreeMap<String, EniConfig>,
    node_overlays: BTreeMap<String, NodeOverlay>,
    access: BTreeMap<Identity, ReviewStatus>,
    aws: Aws,
    api_server: ApiServerFacts,
    kube_proxy_server: Option<String>,
    windows_ipam: Option<String>,
    availability: BTreeMap<Input, Availability>,
}

impl ClusterState {
    /// A copy of the configuration. `None` if Karpenter is older than 0.32, because its objects are not linted.
    pub fn surroundings(&self) -> Option<Surroundings> {
        if self.is_before_machines() {
            return None;
        }
        let mut machines = Vec::new();
        for class in self.classes().map(|facts| &facts.class) {
            let Some(members) = self.class_members(&class.kind, class.name()) else { continue };
            let of_text = members.joined_of_text(&HashKey::of_class(&class.metadata)).next();
            let last = members.last_joined().map(|(_, name)| name);
            machines.extend(of_text.into_iter().chain(last).filter_map(|name| self.claim(name)));
        }
        machines.extend(self.pools().filter_map(|pool| self.claims_of_pool(pool.name()).next()));
        let with_nodes = |claim: &NodeClaim| (claim.clone(), self.nodes_of(claim).into_iter().cloned().collect());
        Some(Surroundings {
            classes: self.classes().map(|facts| facts.class.clone()).collect(),
            pools: self.pools().cloned().collect(),
            aws_auth: self.aws_auth.clone(),
            machines: machines.into_iter().map(with_nodes).collect(),
            karpenter: self.karpenter.clone(),
            daemon_sets: self.daemon_sets.clone(),
            custom_resources: self.looked_up.custom_resources.clone(),
            service_accounts: self.looked_up.service_accounts.clone(),
            eni_configs: self.eni_configs.clone(),
            node_overlays: self.node_overlays.clone(),
            access: self.access.clone(),
            aws: self.aws.clone(),
            api_server: self.api_server.clone(),
            kube_proxy_server: self.kube_proxy_server.clone(),
            windows_ipam: self.windows_ipam.clone(),
            availability: self.availability.clone(),
        })
    }
}

impl Surroundings {
    /// The object in the cluster, with its neighbors only: a node class with its NodePools, a NodePool with its node
    /// class, aws-auth with the roles of all node classes.
    ///
    /// A machine that joined is no evidence for a node class that says something else now.
    pub fn with(&self, object: Object, now: DateTime<Utc>) -> ClusterState {
        let mut state = self.without_neighbors();
        match &object {
            Object::NodeClass(class) => {
                state.aws_auth.clone_from(&self.aws_auth);
                let is_stored = |own: &&NodeClass| own.kind == class.kind && own.name() == class.name();
                let is_same = self.classes.iter().find(is_stored).is_some_and(|own| own.spec == class.spec);
                if is_same {
                    self.add_machines(&mut state, class, now);
                }
                for pool in self.pools.iter().filter(|pool| is_of(pool, class)) {
                    state.apply(Object::NodePool(pool.clone()), now);
                }
            }
            Object::NodePool(pool) => {
                state.aws_auth.clone_from(&self.aws_auth);
                for class in self.classes.iter().filter(|class| is_of(pool, class)) {
                    state.apply(Object::NodeClass(class.clone()), now);
                    self.add_machines(&mut state, class, now);
                }
            }
            Object::AwsAuth(_) => {
                for class in &self.classes {
                    let mut class = class.clone();
                    // It has nothing to do with the roles, and reading all of them takes long.
                    class.spec.user_data = None;
                    self.add_machines(&mut state, &class, now);
                    state.apply(Object::NodeClass(class), now);
                }
            }
            _ => {}
        }
        self.put(object, state, now)
    }

    /// The object in a cluster with the same versions and no other configuration.
    pub fn with_only(&self, object: Object, now: DateTime<Utc>) -> ClusterState {
        self.put(object, self.without_neighbors(), now)
    }

    /// The state with the object. Every input is read or missing as in the cluster, because what the state lacks was
    /// only left out.
    fn put(&self, object: Object, mut state: ClusterState, now: DateTime<Utc>) -> ClusterState {
        let input = object.input();
        state.apply(object, now);
        state.availability.clone_from(&self.availability);
        state.availability.insert(input, Availability::Read);
        state
    }

    fn without_neighbors(&self) -> ClusterState {
        ClusterState {
            karpenter: self.karpenter.clone(),
            daemon_sets: self.daemon_sets.clone(),
            looked_up: LookedUp {
                custom_resources: self.custom_resources.clone(),
                service_accounts: self.service_accounts.clone(),
                ..LookedUp::default()
            },
            eni_configs: self.eni_configs.clone(),
            node_overlays: self.node_overlays.clone(),
            access: self.access.clone(),
            aws: self.aws.clone(),
            api_server: self.api_server.clone(),
            kube_proxy_server: self.kube_proxy_server.clone(),
            windows_ipam: self.windows_ipam.clone(),
            ..ClusterState::default()
        }
    }

    fn add_machines(&self, state: &mut ClusterState, class: &NodeClass, now: DateTime<Utc>) {
        for (claim, nodes) in &self.machines {
            let reference = &claim.spec.node_class_ref;
            if *reference.kind != *class.kind || *reference.name != *class.name() {
                continue;
            }
            state.apply(Object::NodeClaim(claim.clone()), now);
            for node in nodes {
                state.apply(Object::Node(node.clone()), now);
            }
        }
    }
}

fn is_of(pool: &NodePool, class: &NodeClass) -> bool {
    let reference = &pool.spec.template.spec.node_class_ref;
    *reference.kind == *class.kind && *reference.name == *class.name()
}
