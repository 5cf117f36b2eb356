//! How a node role of EKS Auto Mode is authorized.

use crate::case::Case;
use crate::case::finding::Finding;
use crate::explain::commands;

/// The steps that authorize a role. EKS creates an access entry of this type only for the role of its own NodePools.
// Amazon EKS user guide, Create a Node Class for Amazon EKS, "Create node class access entry"
pub(crate) fn authorize(case: &Case, finding: Finding, role: &str) -> Finding {
    let (cluster, arn) = (case.cluster_name().unwrap_or("CLUSTER"), commands::role_arn(role, None));
    finding
        .change(
            "Authorize nodes with this role",
            format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type EC2"),
        )
        .change(
            "Give them Auto Mode's permissions",
            format!(
                "aws eks associate-access-policy --cluster-name {cluster} --principal-arn {arn} --access-scope \
                 type=cluster --policy-arn arn:aws:eks::aws:cluster-access-policy/AmazonEKSAutoNodePolicy"
            ),
        )
}
