//! The VPC CNI, and what the kubelet says when it is not there.

use crate::objects::{Condition, Node, Pod};

/// The VPC CNI's DaemonSet. Source: amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml.
pub const AWS_NODE: &str = "aws-node";
/// The label or annotation that names a Node's ENIConfig, unless the DaemonSet's environment names another.
/// amazon-vpc-cni-k8s v1.20.4 pkg/eniconfig/eniconfig.go.
pub const ENI_CONFIG: &str = "k8s.amazonaws.com/eniConfig";

/// What pods request that a SecurityGroupPolicy selects: an interface of their own, a branch of the Node's trunk.
/// Source: amazon-vpc-resource-controller-k8s pkg/config/type.go `ResourceNamePodENI`.
pub const POD_ENI: &str = "vpc.amazonaws.com/pod-eni";

pub fn has_branch_interface(pod: &Pod) -> bool {
    pod.requests().any(|(name, _)| name == POD_ENI)
}

/// The Ready condition, where it says that the container runtime has no network plugin.
///
/// Old kubelets say `runtime network not ready`, newer ones `container runtime network not ready`; both carry
/// `NetworkReady=false`.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go `updateRuntimeUp`; the text after `message:` is containerd's.
pub fn not_ready(node: &Node) -> Option<&Condition> {
    node.condition("Ready").filter(|c| !c.is_true() && c.message.contains("NetworkReady=false"))
}
