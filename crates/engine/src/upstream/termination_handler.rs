//! aws-node-termination-handler, which takes a Node out of service before an interruption, and its traces.

use crate::objects::{Node, Taint};

/// What it is called in `managedFields`: its program's name.
pub(super) const MANAGER: &str = "node-termination-handler";

/// What its taints begin with, with TAINT_NODE: the rest is spot-itn, rebalance-recommendation, scheduled-maintenance or
/// asg-lifecycle-termination. Source: aws-node-termination-handler v1.25 pkg/node/node.go.
const TAINTS: &str = "aws-node-termination-handler/";

/// A Node with this label it uncordons itself, after the reboot.
/// Source: the same file, `ActionLabelKey`.
const ACTION_LABEL: &str = "aws-node-termination-handler/action";

/// What its DaemonSet and its charts are called; `fullnameOverride` apart.
pub fn is_daemon_set(name: &str) -> bool {
    name.ends_with(MANAGER)
}

/// Whether it takes back itself what it did to the Node.
pub(super) fn uncordons(node: &Node) -> bool {
    node.metadata.label(ACTION_LABEL).is_some()
}

pub(super) fn taint(node: &Node) -> Option<&Taint> {
    node.spec.taints.iter().find(|taint| taint.key.starts_with(TAINTS))
}
