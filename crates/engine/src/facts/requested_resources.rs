//! The resources that a machine was launched for, and whether its Node offers them.

use crate::objects::{Node, NodeClaim};

/// In any unit: `0`, `0Ki`, `0.0`.
pub(crate) fn is_zero(quantity: &str) -> bool {
    !quantity.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// The resources that the NodeClaim requests and the Node does not offer. Karpenter names one of them at random.
/// Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go `RequestedResourcesRegistered` (v1.14.3).
pub(crate) fn missing<'c>(claim: &'c NodeClaim, node: &Node) -> Vec<&'c str> {
    let offered = |name: &str| node.status.allocatable.get(name).is_some_and(|q| !is_zero(q));
    let requests = claim.spec.resources.requests.iter();
    requests.filter(|(name, wanted)| !is_zero(wanted) && !offered(name)).map(|(name, _)| name).collect()
}
