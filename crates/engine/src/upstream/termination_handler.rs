//! aws-node-termination-handler, which takes a Node out of service before an interruption, and its traces.

use crate::objects::{Node, Taint};

/// Its manager name in `managedFields`: its program's name.
pub(super) const MANAGER: &str = "node-termination-handler";

/// The prefix of the taints that it sets with TAINT_NODE. The rest is spot-itn, rebalance-recommendation,
/// scheduled-maintenance or asg-lifecycle-termination. Source: aws-node-termination-handler v1.25 pkg/node/node.go.
const TAINTS: &str = "aws-node-termination-handler/";

/// The handler itself uncordons a Node with this label, after the reboot.
/// Source: the same file, `ActionLabelKey`.
const ACTION_LABEL: &str = "aws-node-termination-handler/action";

/// Whether a DaemonSet has the name that its charts give, unless `fullnameOverride` is set.
pub fn is_daemon_set(name: &str) -> bool {
    name.ends_with(MANAGER)
}

/// Whether the handler itself uncordons the Node.
pub(super) fn uncordons(node: &Node) -> bool {
    node.metadata.label(ACTION_LABEL).is_some()
}

pub(super) fn taint(node: &Node) -> Option<&Taint> {
    node.spec.taints.iter().find(|taint| taint.key.starts_with(TAINTS))
}
