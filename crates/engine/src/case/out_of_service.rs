//! Nodes that somebody has taken out of service.

use super::left_taint;
use crate::objects::{Condition, Node};
use crate::upstream::karpenter::{DISRUPTED_TAINTS, REBOOTING_TAINT};

/// Deleted, stopped, cordoned, rebooted by Karpenter or about to be removed. A cordon is a decision too: node group
/// upgrades and termination handlers begin with one, and `KubeNodeNotReady` of kubernetes-mixin leaves cordoned Nodes
/// out as well.
pub(super) fn is_out_of_service(node: &Node) -> bool {
    node.spec.unschedulable || node.taint(REBOOTING_TAINT).is_some() || is_leaving(node)
}

pub(super) fn is_leaving(node: &Node) -> bool {
    // cluster-autoscaler does not cordon by default.
    const LEAVING_TAINTS: [&str; 2] = [left_taint::SHUT_DOWN, left_taint::TO_BE_DELETED];
    // Graceful shutdown. kubernetes v1.36.3 pkg/kubelet/nodeshutdown.
    let shutting_down = |c: &Condition| c.is_false() && c.message.contains("node is shutting down");
    node.metadata.deletion_timestamp.is_some()
        || LEAVING_TAINTS.iter().chain(&DISRUPTED_TAINTS).any(|key| node.taint(key).is_some())
        || node.condition("Ready").is_some_and(shutting_down)
}
