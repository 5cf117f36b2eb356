//! The IAM role of Karpenter's controller, which is never that of its machines.

use crate::case::Case;
use crate::objects::ServiceAccount;

/// The ServiceAccount of Karpenter and its role, if the node class gives the same role to machines.
pub(crate) fn as_node_role<'w>(case: &Case<'w>) -> Option<(&'w ServiceAccount, &'w str)> {
    let role = case.class()?.spec.role.as_deref()?;
    let own = |arn: &&str| last(arn) == last(role);
    of_karpenter(case).find_map(|account| Some((account, account.role_arn().filter(own)?)))
}

/// The ARN of Karpenter's role, if its ServiceAccount names it.
pub(crate) fn arn<'w>(case: &Case<'w>) -> Option<&'w str> {
    of_karpenter(case).find_map(ServiceAccount::role_arn)
}

fn of_karpenter<'w>(case: &Case<'w>) -> impl Iterator<Item = &'w ServiceAccount> {
    case.cluster.service_accounts().filter(|account| account.metadata.name.contains("karpenter"))
}

/// The name at the end of an ARN or a path.
fn last(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}
