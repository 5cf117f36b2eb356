//! The addresses of API servers that EKS gives.

/// The cluster's id in such an address.
/// Source: Amazon EKS user guide, Cluster API server endpoint.
pub fn cluster_id(endpoint: &str) -> Option<&str> {
    let host = endpoint.trim_start_matches("https://").trim_end_matches('/').trim_end_matches(":443");
    let of_eks =
        [".eks.amazonaws.com", ".eks.amazonaws.com.cn", ".api.aws"].iter().any(|domain| host.ends_with(domain));
    host.split('.').next().filter(|_| of_eks)
}
