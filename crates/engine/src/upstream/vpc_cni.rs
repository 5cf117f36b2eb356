//! What the kubelet says when the network plugin is not there.

use crate::objects::{Condition, Node};

/// The VPC CNI's DaemonSet. Source: amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml.
pub const AWS_NODE: &str = "aws-node";
/// The label or annotation that names a Node's ENIConfig, unless the DaemonSet's environment names another.
/// amazon-vpc-cni-k8s v1.20.4 pkg/eniconfig/eniconfig.go.
pub const ENI_CONFIG: &str = "k8s.amazonaws.com/eniConfig";

/// The Ready condition, where it says that the container runtime has no network plugin.
///
/// Old kubelets say `runtime network not ready`, newer ones `container runtime network not ready`; both carry
/// `NetworkReady=false`.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go `updateRuntimeUp`; the text after `message:` is containerd's.
pub fn not_ready(node: &Node) -> Option<&Condition> {
    node.condition("Ready").filter(|c| !c.is_true() && c.message.contains("NetworkReady=false"))
}
