//! What the kubelet says when the network plugin is not there.

use crate::objects::{Condition, Node};

/// The VPC CNI's DaemonSet. Source: amazon-vpc-cni-k8s v1.20.4 config/master/aws-k8s-cni.yaml.
pub const AWS_NODE: &str = "aws-node";
/// The label or annotation that names a Node's ENIConfig, unless the DaemonSet's environment names another.
/// amazon-vpc-cni-k8s v1.20.4 pkg/eniconfig/eniconfig.go.
pub const ENI_CONFIG: &str = "k8s.amazonaws.com/eniConfig";

/// Families whose size medium can have two network interfaces, one of them a trunk.
/// Source: amazon-vpc-resource-controller-k8s v1.8.2 pkg/aws/vpc/limits.go.
const MEDIUM_HAS_TWO: &str = "a1 c6g c6gd c6gn c7a c7g c7g-flex c7gd c7gn c8a c8g c8g-flex c8gb c8gd c8gn c9g c9gd \
    is4gen m6g m6gd m7a m7g m7g-flex m7gd m8a m8g m8g-flex m8gb m8gd m8gn m9g m9gd r6g r6gd r7a r7g r7gd r8a r8g r8gb \
    r8gd r8gn r9g r9gd x2gd x8g";

/// Whether a machine of this type can have two network interfaces and no more, one of them a trunk for security groups
/// for pods.
/// Source: amazon-vpc-resource-controller-k8s v1.8.2 pkg/aws/vpc/limits.go `Interface`, `IsTrunkingCompatible`.
pub fn has_two_interfaces(instance_type: &str) -> bool {
    match instance_type.split_once('.') {
        Some((family, "medium")) => MEDIUM_HAS_TWO.split_whitespace().any(|has| has == family),
        Some((family, size)) => matches!((family, size), ("g4ad", "xlarge" | "2xlarge") | ("g6f", "large")),
        None => false,
    }
}

/// The Ready condition, where it says that the container runtime has no network plugin.
///
/// Old kubelets say `runtime network not ready`, newer ones `container runtime network not ready`; both carry
/// `NetworkReady=false`.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go `updateRuntimeUp`; the text after `message:` is containerd's.
pub fn not_ready(node: &Node) -> Option<&Condition> {
    node.condition("Ready").filter(|c| !c.is_true() && c.message.contains("NetworkReady=false"))
}
