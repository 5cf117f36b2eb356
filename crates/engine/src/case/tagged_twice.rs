//! A Ready Node that load balancers do not reach, as they reach others: two of its security groups have the cluster's
//! tag.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, NodeClass};
use chrono::{DateTime, TimeDelta, Utc};

/// An Event in which the AWS Load Balancer Controller complains about a node's security groups.
#[derive(Debug)]
pub struct TaggedTwice<'w> {
    pub event: &'w Event,
    pub class: &'w NodeClass,
    /// The ids that the event names and the node class selects.
    pub groups: Vec<&'w str>,
    pub since: DateTime<Utc>,
}

/// The controller repeats it for as long as it holds.
const STILL_SAID: TimeDelta = TimeDelta::minutes(30);

/// Source: kubernetes-sigs/aws-load-balancer-controller v2.7.0 pkg/targetgroupbinding/networking_manager.go
/// (`resolveEndpointSGForENI`).
fn tells(event: &Event) -> bool {
    event.message.contains("exactly one securityGroup tagged with kubernetes.io/cluster/")
}

/// Whether machines of another node class have joined, which has one of these groups at most. Where all machines have
/// them, it is the load balancer that has the trouble.
fn is_otherwise_elsewhere(cluster: &ClusterState, class: &NodeClass, groups: &[&str]) -> bool {
    cluster.classes().map(|facts| &facts.class).filter(|other| other.name() != class.name()).any(|other| {
        let own = &other.status.security_groups;
        let shared = own.iter().filter(|group| groups.contains(&group.id.as_str())).count();
        let mut claims = cluster.claims_of_class(&other.kind, other.name());
        !own.is_empty() && shared < 2 && claims.any(|claim| claim.is_true("Registered"))
    })
}

pub fn tagged_twice<'w>(cluster: &'w ClusterState, node: &Node, now: DateTime<Utc>) -> Option<TaggedTwice<'w>> {
    let reference = &cluster.claim_of_node(node)?.spec.node_class_ref;
    let class = &cluster.class(&reference.kind, &reference.name)?.class;
    let told = cluster.events_of_kind("TargetGroupBinding").filter(|event| tells(event));
    let told = told.filter(|event| event.last_seen().is_some_and(|at| now - at <= STILL_SAID));
    let named = told.filter_map(|event| {
        let groups = class.status.security_groups.iter().map(|group| group.id.as_str());
        let groups: Vec<&str> = groups.filter(|id| event.message.contains(id)).collect();
        (groups.len() > 1 && is_otherwise_elsewhere(cluster, class, &groups)).then_some((event, groups))
    });
    let (event, groups) = named.max_by_key(|(event, _)| (event.last_seen(), &event.involved_object.name))?;
    let since = event.first_timestamp.or(event.last_seen()).max(node.metadata.creation_timestamp)?;
    Some(TaggedTwice { event, class, groups, since })
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let found = tagged_twice(cluster, node, now)?;
    let about = &found.event.involved_object;
    let because = "load balancers do not take nodes with two such groups";
    let evidence =
        Evidence::new(format!("Event {}/{}", about.kind, about.name), "message", found.event.said(), because);
    let wait = Wait::new(Stage::Ready, found.since, t.ready * 3, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::TaggedTwice, ..wait }.only_with_proof())
}
