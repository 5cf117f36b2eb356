//! The IAM role of Karpenter's controller, which is never that of its machines.

use crate::case::Case;
use crate::objects::ServiceAccount;

/// The ServiceAccount of Karpenter and its role, where that is the one that the node class gives to machines.
pub(crate) fn as_node_role<'w>(case: &Case<'w>) -> Option<(&'w ServiceAccount, &'w str)> {
    let role = case.class()?.spec.role.as_deref()?;
    let own = |arn: &&str| last(arn) == last(role);
    let mut of_karpenter =
        case.cluster.service_accounts().filter(|account| account.metadata.name.contains("karpenter"));
    of_karpenter.find_map(|account| Some((account, account.role_arn().filter(own)?)))
}

/// The name at the end of an ARN or a path.
fn last(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}
