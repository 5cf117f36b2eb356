//! Where a pod's AWS permissions come from, as its own environment shows it.

use crate::objects::Pod;

/// The DaemonSet that hands out Pod Identity's credentials.
/// Source: aws/eks-pod-identity-agent v0.1 charts/eks-pod-identity-agent.
pub const POD_IDENTITY_AGENT: &str = "eks-pod-identity-agent";

/// The source of a pod's AWS permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credentials<'p> {
    /// IAM roles for service accounts: the role that the ServiceAccount's annotation names.
    Irsa(&'p str),
    /// EKS Pod Identity: only the agent on the Node hands them out.
    PodIdentity,
    /// Neither of these: the instance's role.
    Node,
}

impl<'p> Credentials<'p> {
    /// Reads the source from the pod's environment variables, which the admission webhook writes.
    /// Source: aws/amazon-eks-pod-identity-webhook v0.6 pkg/handler/handler.go `addEnvToContainer`.
    pub fn of(pod: &'p Pod) -> Self {
        let containers = pod.spec.containers.iter().chain(&pod.spec.init_containers);
        let value =
            |name: &str| containers.clone().flat_map(|c| &c.env).find(|e| e.name == name).map(|e| e.value.as_str());
        match (value("AWS_CONTAINER_CREDENTIALS_FULL_URI"), value("AWS_ROLE_ARN")) {
            (Some(_), _) => Self::PodIdentity,
            (None, Some(role)) => Self::Irsa(role),
            (None, None) => Self::Node,
        }
    }
}
