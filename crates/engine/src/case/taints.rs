//! Taints that a Node should have, and taints in one line.

use crate::objects::{Node, NodeClaim, Taint};

/// The lasting taints of a claim that its Node does not carry.
pub fn missing_taints(claim: &NodeClaim, node: &Node) -> Vec<Taint> {
    claim.spec.taints.iter().filter(|t| !node.spec.taints.iter().any(|have| have.matches(t))).cloned().collect()
}

/// Taints in one line; `none` where there is none.
pub fn listed(taints: &[Taint]) -> String {
    if taints.is_empty() {
        "none".to_owned()
    } else {
        taints.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}
