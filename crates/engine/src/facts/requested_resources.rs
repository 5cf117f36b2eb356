//! The resources that a machine was launched for, and whether its Node offers them.

use crate::objects::{Node, NodeClaim};

/// In any unit: `0`, `0Ki`, `0.0`.
pub(crate) fn is_zero(quantity: &str) -> bool {
    !quantity.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// The resources that the NodeClaim requests and the Node does not offer. Karpenter names one of them at random, which
/// counts even if a report has left the requests out.
/// Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go `RequestedResourcesRegistered` (v1.14.3).
pub(crate) fn missing<'c>(claim: &'c NodeClaim, node: &Node) -> Vec<&'c str> {
    let offered = |name: &str| node.status.allocatable.get(name).is_some_and(|q| !is_zero(q));
    let requests = claim.spec.resources.requests.iter();
    let requests = requests.filter(|(_, wanted)| !is_zero(wanted)).map(|(name, _)| name);
    let mut missing: Vec<&str> = requests.filter(|name| !offered(name)).collect();
    let named = named(claim).filter(|name| !offered(name) && !missing.contains(name));
    missing.extend(named);
    missing
}

fn named(claim: &NodeClaim) -> Option<&str> {
    let (_, said) = claim.condition("Initialized")?.message.split_once("Resource \"")?;
    said.split_once("\" was requested but not registered").map(|(name, _)| name)
}
