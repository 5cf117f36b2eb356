//! What Karpenter reckons that a machine has of a resource that a device plugin offers, and what its Node shows.

use super::pod_requests::takes;
use crate::cluster_state::ClusterState;
use crate::objects::{Node, NodeClaim, NodePool, Pod, quantity};
use crate::upstream::unplaced::Shortfall;

/// A machine of a NodePool that has taken pods, and one such resource.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'w> {
    pub claim: &'w NodeClaim,
    pub node: &'w Node,
    pub resource: &'w str,
    pub asked: f64,
    pub reckoned: f64,
    pub shown: f64,
}

fn amount(quantity: Option<&str>) -> f64 {
    quantity.and_then(quantity::parse).unwrap_or(0.0)
}

fn offers<'w>(
    cluster: &'w ClusterState,
    pool: &NodePool,
    resource: &'w str,
    asked: f64,
) -> impl Iterator<Item = Offer<'w>> {
    let in_service = |claim: &&NodeClaim| claim.is_true("Initialized") && claim.metadata.deletion_timestamp.is_none();
    let claims = cluster.claims_of_pool(pool.name()).filter(in_service);
    claims.filter_map(move |claim| {
        let node = *cluster.nodes_of(claim).first().filter(|node| node.is_ready())?;
        let reckoned = amount(claim.status.allocatable.get(resource));
        Some(Offer { claim, node, resource, asked, reckoned, shown: amount(node.status.allocatable.get(resource)) })
    })
}

/// Such a resource is named by a domain. Source: kubernetes v1.36.3 pkg/apis/core/v1/helper/helpers.go
/// `IsExtendedResourceName`.
fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/")
}

/// A node that offers more of an extended resource than Karpenter counts for its instance type, and enough for the
/// request, while everything else fits by Karpenter's count. The device plugin shares each device among several pods.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `nvidiaGPUs`, which counts those of EC2.
pub(super) fn multiplied<'w>(
    cluster: &'w ClusterState,
    pool: &NodePool,
    short: &Shortfall<'w>,
) -> Option<(&'w str, Offer<'w>)> {
    let fits = |claim: &NodeClaim, but: &str| {
        let mut rest = short.most.iter().filter(|(name, _)| *name != but);
        rest.all(|(name, asked)| amount(Some(asked)) <= amount(claim.status.allocatable.get(name)))
    };
    short.total.iter().filter(|(name, _)| is_extended(name)).find_map(|&(name, total)| {
        let asked = quantity::parse(total)?;
        let more = |o: &Offer| o.reckoned > 0.0 && o.reckoned < asked && asked <= o.shown && fits(o.claim, name);
        Some((total, offers(cluster, pool, name, asked).find(more)?))
    })
}

/// A machine that was made for none of a resource which Karpenter attaches on demand only, and that has room for all
/// the rest of a pod that asks for it.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `getEFACountForInstance`; v1.0.8
/// pkg/providers/launchtemplate/launchtemplate.go.
pub fn never_attached<'w>(cluster: &'w ClusterState, pool: &NodePool, pod: &'w Pod) -> Option<Offer<'w>> {
    let asked = takes(pod, EFA).0;
    let mut plain = offers(cluster, pool, EFA, asked)
        .filter(|o| asked > 0.0 && o.shown == 0.0 && amount(o.claim.spec.resources.requests.get(EFA)) == 0.0);
    plain.find(|o| has_the_rest(cluster, o.node, pod))
}

/// karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go `ResourceEFA`.
pub const EFA: &str = "vpc.amazonaws.com/efa";

fn has_the_rest(cluster: &ClusterState, node: &Node, pod: &Pod) -> bool {
    let taken = |resource: &str| {
        cluster.pods_on(node.name()).filter(|pod| !pod.has_ended()).map(|pod| takes(pod, resource).1).sum::<f64>()
    };
    let asked = pod.requests().map(|(name, _)| name);
    let untainted =
        node.spec.taints.iter().all(|taint| {
            taint.effect == "PreferNoSchedule" || pod.spec.tolerations.iter().any(|own| own.tolerates(taint))
        });
    untainted
        && !node.spec.unschedulable
        && asked
            .filter(|name| *name != EFA)
            .all(|name| takes(pod, name).1 + taken(name) <= amount(node.status.allocatable.get(name)))
}
