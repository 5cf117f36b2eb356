//! The cordon that aws-node-termination-handler puts on a Node before an interruption, and its traces.

use crate::objects::Node;
use chrono::{DateTime, Utc};

/// What it is called in `managedFields`: its program's name.
/// Source: aws-node-termination-handler v1.25 Makefile `build`; k8s.io/client-go v0.36.3 rest/config.go
/// `DefaultKubernetesUserAgent`.
const MANAGER: &str = "node-termination-handler";

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

/// Why nothing is scheduled on the Node.
#[derive(Debug, Clone)]
pub struct Cordon {
    pub field: &'static str,
    pub says: String,
    pub since: DateTime<Utc>,
    /// Its taint, where it set one.
    pub taint: Option<String>,
}

/// The handler's own cordon or taint, unless it will take that back itself.
pub fn cordon(node: &Node) -> Option<Cordon> {
    if node.metadata.label(ACTION_LABEL).is_some() {
        return None;
    }
    let taint = node.spec.taints.iter().find(|taint| taint.key.starts_with(TAINTS));
    let writers = node.metadata.managed_fields.0.iter().filter(|field| field.owns_cordon);
    let writer = writers.max_by_key(|field| field.time).filter(|_| node.spec.unschedulable);
    match (writer, taint) {
        (Some(writer), _) if writer.manager == MANAGER => Some(Cordon {
            field: "spec.unschedulable",
            says: format!("true, written by {MANAGER}"),
            since: writer.time?,
            taint: taint.map(ToString::to_string),
        }),
        (None, Some(taint)) => Some(Cordon {
            field: "spec.taints",
            says: taint.to_string(),
            since: taint.time_added?,
            taint: Some(taint.to_string()),
        }),
        // Somebody else has cordoned it since, or nobody.
        (Some(_), _) | (None, None) => None,
    }
}
