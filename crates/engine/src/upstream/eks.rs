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
