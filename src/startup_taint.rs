//! Known startup taints and who removes them.

use crate::foreign::Taint;

/// Who removes a taint.
#[derive(Debug)]
pub struct Owner {
    /// The taint's key; a prefix where it ends in `/`.
    key: &'static str,
    /// For sentences.
    pub name: &'static str,
    /// Names of its DaemonSet, as its charts and manifests call it.
    daemon_sets: &'static [&'static str],
    /// Who removes the taint, where the pod on the Node does not do it itself.
    pub remover: Option<&'static str>,
    pub fix: &'static str,
}

const OWNERS: &[Owner] = &[
    // aws-ebs-csi-driver pkg/driver/node.go `AgentNotReadyNodeTaintKey`.
    Owner {
        key: "ebs.csi.aws.com/agent-not-ready",
        name: "the EBS CSI driver",
        daemon_sets: &["ebs-csi-node"],
        remover: None,
        fix: "Get the EBS CSI driver's node pod Ready on this Node.",
    },
    // aws-efs-csi-driver pkg/driver/node.go `AgentNotReadyNodeTaintKey`.
    Owner {
        key: "efs.csi.aws.com/agent-not-ready",
        name: "the EFS CSI driver",
        daemon_sets: &["efs-csi-node"],
        remover: None,
        fix: "Get the EFS CSI driver's node pod Ready on this Node.",
    },
    Owner {
        key: "fsx.csi.aws.com/agent-not-ready",
        name: "the FSx CSI driver",
        daemon_sets: &["fsx-csi-node", "fsx-openzfs-csi-node"],
        remover: None,
        fix: "Get the FSx CSI driver's node pod Ready on this Node.",
    },
    Owner {
        key: "s3.csi.aws.com/agent-not-ready",
        name: "the Mountpoint for S3 CSI driver",
        daemon_sets: &["s3-csi-node"],
        remover: None,
        fix: "Get the S3 CSI driver's node pod Ready on this Node.",
    },
    // cilium operator/option `DefaultAgentNotReadyTaintKey`: the operator removes it once the agent's pod is Ready.
    Owner {
        key: "node.cilium.io/agent-not-ready",
        name: "Cilium",
        daemon_sets: &["cilium"],
        remover: Some("the Cilium operator"),
        fix: "Get the cilium agent Ready on this Node; the Cilium operator then removes the taint.",
    },
    // kubernetes-sigs/node-readiness-controller: the controller removes it once the rule's condition is reported.
    Owner {
        key: "readiness.k8s.io/",
        name: "the Node Readiness Controller",
        daemon_sets: &[],
        remover: Some("the Node Readiness Controller"),
        fix: "See which NodeReadinessRule holds this taint, and which condition nobody reports.",
    },
];

impl Owner {
    /// Whether a DaemonSet of this name is the owner's.
    #[must_use]
    pub fn is(&self, daemon_set: &str) -> bool {
        self.daemon_sets.contains(&daemon_set)
    }

    /// Whether a pod on the Node stands behind it at all.
    #[must_use]
    pub fn runs_on_nodes(&self) -> bool {
        !self.daemon_sets.is_empty()
    }
}

/// Who removes this taint, where it is a known one.
#[must_use]
pub fn owner(taint: &Taint) -> Option<&'static Owner> {
    OWNERS.iter().find(|o| if o.key.ends_with('/') { taint.key.starts_with(o.key) } else { taint.key == o.key })
}
