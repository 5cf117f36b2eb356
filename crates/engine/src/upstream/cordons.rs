//! Controllers that cordon a Node for a while, and the traces of those that have not uncordoned it.

use super::termination_handler;
use crate::objects::Node;
use chrono::{DateTime, Utc};

/// The controller that took the Node out of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cordoner {
    /// aws-node-termination-handler, for an interruption.
    TerminationHandler,
    /// kured, for a reboot.
    Kured,
    /// cluster-autoscaler, for a removal that it has given up: its taint is gone.
    Autoscaler,
    /// The NVIDIA GPU operator, for a new driver, which failed.
    DriverUpgrade,
}

/// Why nothing is scheduled on the Node.
#[derive(Debug, Clone)]
pub struct Cordon {
    pub by: Cordoner,
    pub field: &'static str,
    pub says: String,
    pub since: DateTime<Utc>,
    /// The handler's taint, if it set one.
    pub taint: Option<String>,
}

/// Their manager names in `managedFields`: the names of their programs.
/// Sources: aws-node-termination-handler v1.25 Makefile `build`; kured 1.17.0 cmd/kured; cluster-autoscaler 1.33
/// Makefile; k8s.io/client-go v0.36.3 rest/config.go `DefaultKubernetesUserAgent`.
const MANAGERS: [(&str, Cordoner); 3] = [
    (termination_handler::MANAGER, Cordoner::TerminationHandler),
    ("kured", Cordoner::Kured),
    ("cluster-autoscaler", Cordoner::Autoscaler),
];

/// The state of the GPU operator's driver upgrade. If the upgrade fails, the operator leaves the Node for a person to
/// fix.
/// Source: NVIDIA/k8s-operator-libs pkg/upgrade/consts.go `UpgradeStateLabelKeyFmt`, `UpgradeStateFailed`.
pub const DRIVER_STATE: &str = "nvidia.com/gpu-driver-upgrade-state";
pub const DRIVER_FAILED: &str = "upgrade-failed";
/// Marks a Node that was cordoned before the upgrade: the same file, `UpgradeInitialStateAnnotationKeyFmt`.
pub const CORDONED_BEFORE: &str = "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable";

/// The cordon of the Node, if one of these controllers set it and has not removed it.
pub fn cordon(node: &Node) -> Option<Cordon> {
    let writers = node.metadata.managed_fields.0.iter().filter(|field| field.owns_cordon);
    let writer = writers.max_by_key(|field| field.time).filter(|_| node.spec.unschedulable);
    let taint = termination_handler::taint(node);
    let written = |by| {
        let writer = writer?;
        Some(Cordon {
            by,
            field: "spec.unschedulable",
            says: format!("true, written by {}", writer.writer()),
            since: writer.time?,
            taint: taint.filter(|_| by == Cordoner::TerminationHandler).map(ToString::to_string),
        })
    };
    let by = writer.and_then(|w| MANAGERS.iter().find(|(manager, _)| w.manager == **manager)).map(|(_, by)| *by);
    match (by, writer, taint) {
        (Some(Cordoner::TerminationHandler), ..) if termination_handler::uncordons(node) => None,
        (Some(by), ..) => written(by),
        (None, None, Some(taint)) if !termination_handler::uncordons(node) => Some(Cordon {
            by: Cordoner::TerminationHandler,
            field: "spec.taints",
            says: taint.to_string(),
            since: taint.time_added?,
            taint: Some(taint.to_string()),
        }),
        // Somebody else has cordoned it, or nobody.
        _ => driver_upgrade(node),
    }
}

fn driver_upgrade(node: &Node) -> Option<Cordon> {
    let failed = node.metadata.label(DRIVER_STATE).filter(|state| *state == DRIVER_FAILED)?;
    if !node.spec.unschedulable || node.metadata.annotation(CORDONED_BEFORE).is_some() {
        return None;
    }
    Some(Cordon {
        by: Cordoner::DriverUpgrade,
        field: "metadata.labels",
        says: format!("{DRIVER_STATE}={failed}"),
        since: since(node)?,
        taint: None,
    })
}

/// Since when a Node is cordoned: the node lifecycle controller notes it on the taint that it makes of that.
/// Source: kubernetes v1.36.3 pkg/controller/util/node/controller_utils.go `SwapNodeControllerTaint`.
pub fn since(node: &Node) -> Option<DateTime<Utc>> {
    let taint = node.taint(UNSCHEDULABLE_TAINT)?;
    if !node.spec.unschedulable {
        return None;
    }
    taint.time_added
}

/// kubernetes v1.36.3 k8s.io/api/core/v1/well_known_taints.go.
pub const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
