//! Whether the policy and the grants of a volume's key leave out the role that launches the machine.

use crate::case::Case;
use crate::facts::{controller_role, instance_state};
use crate::objects::NodeClass;
use chrono::{DateTime, Utc};

/// A role that needs the key, but that neither its policy nor a grant names.
pub(crate) struct LeftOut<'w> {
    /// The key's ARN.
    pub key: &'w str,
    pub who: String,
    pub named: &'w [String],
    /// Whether no other role could use the key in its place.
    pub is_sure: bool,
    pub at: Option<DateTime<Utc>>,
}

const OF_SPOT: &str = "AWSServiceRoleForEC2Spot";

/// `None` if it is named, if IAM may decide, or if nodewhy cannot tell which role needs the key.
pub(crate) fn left_out<'w>(case: &Case<'w>) -> Option<LeftOut<'w>> {
    let key = instance_state::key_users_in_question(case)?;
    let (users, at) = case.cluster.aws().key_users(key).known()?;
    let named = users.principals.as_slice();
    let is_spot = match case.claim?.fixed("karpenter.sh/capacity-type")? {
        "spot" => true,
        "on-demand" => false,
        _ => return None,
    };
    // The policy of the service-linked role has nothing of KMS, so that what IAM permits in the account is no way out.
    // That EC2 takes this role for every fleet, its guide does not say.
    // Source: Amazon EC2 user guide, "Service-linked role for Spot Instance requests".
    let (who, is_sure) = if is_spot {
        (OF_SPOT.to_owned(), false)
    } else {
        let role = controller_role::arn(case)?;
        if !case.class().is_some_and(NodeClass::is_ec2) {
            return None;
        }
        (role.to_owned(), true)
    };
    let is_account = |arn: &str| arn.ends_with(":root") || arn.chars().all(|c| c.is_ascii_digit());
    let admits = |arn: &String| arn == "*" || name(arn) == name(&who) || (!is_spot && is_account(arn));
    (!named.iter().any(admits)).then_some(LeftOut { key, who, named, is_sure, at })
}

/// A role's name, also in the ARN of a session.
fn name(arn: &str) -> &str {
    match arn.split_once(":assumed-role/") {
        Some((_, session)) => session.split('/').next().unwrap_or(session),
        None => arn.rsplit('/').next().unwrap_or(arn),
    }
}
