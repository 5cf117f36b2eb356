//! Known startup taints, and the components that remove them.

use crate::objects::{NodePool, Pod, Taint};

/// The component that a taint belongs to.
#[derive(Debug)]
pub struct TaintOwner {
    /// The taint's key; a prefix where it ends in `/`.
    key: &'static str,
    /// For sentences.
    pub name: &'static str,
    /// Names of its DaemonSet, as its charts and manifests call it.
    daemon_sets: &'static [&'static str],
    /// The component that removes the taint, if the owner's pod on the Node does not.
    pub remover: Option<&'static str>,
    /// Why the taint may remain, if no pod on the Node can show it.
    pub otherwise: Option<&'static str>,
    pub fix: &'static str,
    /// The next step if its pod on the Node is Ready and the taint stays: what to do, and a command that shows more.
    pub ready: Option<(&'static str, &'static str)>,
}

const OWNERS: &[TaintOwner] = &[
    // aws-ebs-csi-driver pkg/driver/node.go `AgentNotReadyNodeTaintKey`.
    TaintOwner {
        key: "ebs.csi.aws.com/agent-not-ready",
        name: "the EBS CSI driver",
        daemon_sets: &["ebs-csi-node"],
        remover: None,
        otherwise: None,
        fix: "Get the EBS CSI driver's node pod Ready on this Node.",
        ready: None,
    },
    // aws-efs-csi-driver pkg/driver/node.go `AgentNotReadyNodeTaintKey`.
    TaintOwner {
        key: "efs.csi.aws.com/agent-not-ready",
        name: "the EFS CSI driver",
        daemon_sets: &["efs-csi-node"],
        remover: None,
        otherwise: None,
        fix: "Get the EFS CSI driver's node pod Ready on this Node.",
        ready: None,
    },
    TaintOwner {
        key: "fsx.csi.aws.com/agent-not-ready",
        name: "the FSx CSI driver",
        daemon_sets: &["fsx-csi-node"],
        remover: None,
        otherwise: None,
        fix: "Get the FSx CSI driver's node pod Ready on this Node.",
        ready: None,
    },
    // aws-fsx-openzfs-csi-driver pkg/driver/constants.go `AgentNotReadyNodeTaintKey`.
    TaintOwner {
        key: "fsx.openzfs.csi.aws.com/agent-not-ready",
        name: "the FSx for OpenZFS CSI driver",
        daemon_sets: &["fsx-openzfs-csi-node"],
        remover: None,
        otherwise: None,
        fix: "Get the FSx for OpenZFS CSI driver's node pod Ready on this Node.",
        ready: None,
    },
    TaintOwner {
        key: "s3.csi.aws.com/agent-not-ready",
        name: "the Mountpoint for S3 CSI driver",
        daemon_sets: &["s3-csi-node"],
        remover: None,
        otherwise: None,
        fix: "Get the S3 CSI driver's node pod Ready on this Node.",
        ready: None,
    },
    // cilium operator/option `DefaultAgentNotReadyTaintKey`: the operator removes it once the agent's pod is Ready.
    TaintOwner {
        key: "node.cilium.io/agent-not-ready",
        name: "Cilium",
        daemon_sets: &["cilium"],
        remover: Some("the Cilium operator"),
        otherwise: None,
        fix: "Get the cilium agent Ready on this Node. The Cilium operator then removes the taint.",
        ready: Some((
            "See why the Cilium operator does not remove the taint: it must run somewhere (on a Node without this \
             taint, or tolerating it), and with the option remove-cilium-node-taints.",
            "kubectl logs -n kube-system deployment/cilium-operator --tail=-1 | grep -i taint",
        )),
    },
    // istio pilot/pkg/controllers/untaint/nodeuntainter.go `TaintName`; off unless
    // PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS is set.
    TaintOwner {
        key: "cni.istio.io/not-ready",
        name: "the Istio CNI",
        daemon_sets: &["istio-cni-node"],
        remover: Some("istiod"),
        otherwise: None,
        fix: "Get istio-cni-node Ready on this Node. istiod then removes the taint.",
        ready: Some((
            "Turn on istiod's untaint controller, because no other component removes the taint: \
             PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS=true. With Helm, set taint.enabled=true. Before Istio 1.30, \
             this only grants the permissions, so set pilot.env too.",
            "kubectl get deployment -n istio-system istiod -o yaml | grep -A1 UNTAINT",
        )),
    },
    // datadog-operator internal/controller/untaint_controller.go `agentNotReadyTaintKey`, since v1.28; off by default.
    TaintOwner {
        key: "agent.datadoghq.com/not-ready",
        name: "the Datadog agent",
        daemon_sets: &["datadog-agent", "datadog"],
        remover: Some("the Datadog Operator"),
        otherwise: None,
        fix: "Get the Datadog agent Ready on this Node. The Datadog Operator then removes the taint.",
        ready: Some((
            "Turn on the untaint controller of the Datadog Operator: without it no component removes the taint.",
            "kubectl logs -n DATADOG_NAMESPACE -l app.kubernetes.io/name=datadog-operator --tail=-1 | grep -i untaint",
        )),
    },
    // uswitch/nidhogg pkg/nidhogg/handler.go: the rest of the key is NAMESPACE.DAEMONSET.
    TaintOwner {
        key: OF_NIDHOGG,
        name: "Nidhogg",
        daemon_sets: &[],
        remover: Some("Nidhogg"),
        otherwise: Some("it does so once the pod of the DaemonSet that the taint names is Ready on the Node"),
        fix: "Get the DaemonSet that the taint names Ready on this Node, and see that Nidhogg itself runs.",
        ready: None,
    },
    // NVIDIA/skyhook @0a44dc5 docs/runtime_required.md: the operator removes it once all packages of the Node are
    // complete.
    TaintOwner {
        key: OF_SKYHOOK,
        name: "the Skyhook operator",
        daemon_sets: &[],
        remover: Some("the Skyhook operator"),
        otherwise: Some("it does so once all packages of its Skyhooks are complete on the Node"),
        fix: "See in the status of the Skyhooks which package is not complete on this Node. Correct that package, or \
              take it out of its Skyhook.",
        ready: None,
    },
    // kubernetes-sigs/node-readiness-controller: the controller removes it once the rule's condition is reported.
    TaintOwner {
        key: "readiness.k8s.io/",
        name: "the Node Readiness Controller",
        daemon_sets: &[],
        remover: Some("the Node Readiness Controller"),
        otherwise: Some("the condition that its rule asks for is not reported as the rule wants it"),
        fix: "See which NodeReadinessRule holds this taint, and which condition no component reports.",
        ready: None,
    },
    // cluster-api api/core/v1beta1/common_types.go `NodeUninitializedTaint`.
    TaintOwner {
        key: OF_CLUSTER_API,
        name: "Cluster API",
        daemon_sets: &[],
        remover: Some("Cluster API"),
        otherwise: Some("it does so only for Nodes that it created, and it did not create this one"),
        fix: "Remove the taint where new nodes get it: in userData of the node class, or in taints or startupTaints of \
              the NodePool. Or run a controller that removes it from Nodes that Cluster API did not create.",
        ready: None,
    },
];

const OF_SKYHOOK: &str = "skyhook.nvidia.com";
const OF_NIDHOGG: &str = "nidhogg.uswitch.com/";
const OF_CLUSTER_API: &str = "node.cluster.x-k8s.io/uninitialized";

/// Namespace and name of the DaemonSet whose pod must be Ready before Nidhogg removes the taint.
/// Source: uswitch/nidhogg pkg/nidhogg/handler.go.
pub fn watched_daemon_set(taint: &Taint) -> Option<(&str, &str)> {
    taint.key.strip_prefix(OF_NIDHOGG)?.split_once('.')
}

/// Skyhook and package of a pod that sets up its Node for the Skyhook operator.
/// Source: NVIDIA/skyhook @0a44dc5 operator/internal/controller/pod_controller.go (`skyhook.nvidia.com/name`,
/// `skyhook.nvidia.com/package`).
pub fn package(pod: &Pod) -> Option<(&str, &str)> {
    let label = |key: &str| pod.metadata.label(key);
    Some((label("skyhook.nvidia.com/name")?, label("skyhook.nvidia.com/package")?))
}

/// Whether the taint goes once all packages of Skyhooks are complete on the Node.
pub fn waits_for_packages(taint: &Taint) -> bool {
    taint.key == OF_SKYHOOK
}

impl TaintOwner {
    /// Whether its remover leaves the taint on Nodes that Karpenter launched.
    pub fn passes_over_karpenters_nodes(&self) -> bool {
        self.key == OF_CLUSTER_API
    }

    /// Whether a DaemonSet of this name is the owner's.
    pub fn is(&self, daemon_set: &str) -> bool {
        self.daemon_sets.contains(&daemon_set)
    }

    /// The names that its DaemonSets may have.
    pub fn daemon_sets(&self) -> &'static [&'static str] {
        self.daemon_sets
    }

    /// The Deployment that removes the taint, if its pod on the Node does not.
    /// Sources: the charts cilium, istiod and datadog-operator; node-readiness-controller config/default.
    pub fn remover_deployment(&self) -> Option<&'static str> {
        match self.key {
            "node.cilium.io/agent-not-ready" => Some("cilium-operator"),
            "cni.istio.io/not-ready" => Some("istiod"),
            "agent.datadoghq.com/not-ready" => Some("datadog-operator"),
            "readiness.k8s.io/" => Some("nrr-controller-manager"),
            _ => None,
        }
    }

    /// The environment variable without which its remover leaves the taint.
    /// Source: istio 1.26.2 pilot/pkg/features/pilot.go `EnableNodeUntaintControllers`, false by default.
    pub fn switch(&self) -> Option<&'static str> {
        (self.key == "cni.istio.io/not-ready").then_some("PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS")
    }

    /// Whether it keeps Nodes by rules that can be read.
    pub fn has_rules(&self) -> bool {
        self.key == "readiness.k8s.io/"
    }
}

/// Whether a text names one of these taints.
pub fn is_named_in(text: &str) -> bool {
    OWNERS.iter().any(|owner| text.contains(owner.key))
}

/// The one that a NodePool has among its lasting taints.
pub fn among_taints(pool: &NodePool) -> Option<&Taint> {
    let taints = &pool.spec.template.spec.taints;
    taints.iter().find(|taint| taint.keeps_pods_off() && owner(taint).is_some())
}

/// The owner of this taint, if nodewhy knows it.
pub fn owner(taint: &Taint) -> Option<&'static TaintOwner> {
    OWNERS.iter().find(|o| if o.key.ends_with('/') { taint.key.starts_with(o.key) } else { taint.key == o.key })
}
