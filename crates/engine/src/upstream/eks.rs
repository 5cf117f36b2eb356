//! What EKS leaves to be seen: the addresses of its API servers, and the versions of what it builds.

/// Whether EKS has built this API server or kubelet: `v1.34.2-eks-ecaa3a6`.
/// Source: Amazon EKS user guide, EKS platform versions; awslabs/amazon-eks-ami CHANGELOG.md.
pub fn has_built(version: &str) -> bool {
    version.contains("-eks-")
}

/// The cluster's id in such an address.
/// Source: Amazon EKS user guide, Cluster API server endpoint.
pub fn cluster_id(endpoint: &str) -> Option<&str> {
    let host = endpoint.trim_start_matches("https://").trim_end_matches('/').trim_end_matches(":443");
    let of_eks =
        [".eks.amazonaws.com", ".eks.amazonaws.com.cn", ".api.aws"].iter().any(|domain| host.ends_with(domain));
    host.split('.').next().filter(|_| of_eks)
}

/// The managed node group of a Node, and what EKS made it from; with a custom image only the launch template tells.
/// Source: Amazon EKS user guide, Managed node groups; the Nodes of any.
pub const NODE_GROUP: &str = "eks.amazonaws.com/nodegroup";
pub const GROUP_VERSION: [&str; 2] =
    ["eks.amazonaws.com/nodegroup-image", "eks.amazonaws.com/sourceLaunchTemplateVersion"];
