//! What a machine was bought for, and whether its Node offers it.

use crate::objects::{Node, NodeClaim};

/// In any unit: `0`, `0Ki`, `0.0`.
pub(crate) fn is_zero(quantity: &str) -> bool {
    !quantity.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// What the claim asks for and the Node does not offer. Karpenter names one of them at random.
/// Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go `RequestedResourcesRegistered` (v1.14.3).
pub(crate) fn missing<'c>(claim: &'c NodeClaim, node: &Node) -> Vec<&'c str> {
    let offered = |name: &str| node.status.allocatable.get(name).is_some_and(|q| !is_zero(q));
    let requests = claim.spec.resources.requests.iter();
    requests.filter(|(name, wanted)| !is_zero(wanted) && !offered(name)).map(|(name, _)| name).collect()
}
