//! A call that AWS denies, as a log names it: the call and the role.

use crate::api::Evidence;
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::NodeClaim;
use logs::fact::Fact;

const DENIED: &str = " is not authorized to perform: ";
const ENCODED: &str = "Encoded authorization failure message: ";

/// A message of AWS that denies a call, in at most so many characters: who, which call, on what. It drops the name of
/// the session, which changes with every try, and the encoded message. `None` if the message denies no call.
///
/// Source: IAM user guide, "Troubleshoot access denied error messages".
pub(crate) fn shortened(message: &str, most: usize) -> Option<String> {
    let (user, call) = message.split_once(DENIED)?;
    let user = without_session(user);
    let call = match call.split_once(ENCODED) {
        Some((before, code)) => {
            let after = code.split_once(char::is_whitespace).map_or("", |(_, after)| after);
            format!("{before}{ENCODED}… {after}").trim_end().to_owned()
        }
        None => call.to_owned(),
    };
    let whole = format!("{user}{DENIED}{call}");
    if whole.chars().count() <= most {
        return Some(whole);
    }
    // What is denied says more than the words before it.
    let front = user.rfind("User: ").and_then(|at| user.get(at..)).unwrap_or(&user);
    let denied = format!("… {front}{DENIED}{call}");
    if denied.chars().count() <= most {
        return Some(denied);
    }
    Some(denied.chars().take(most.saturating_sub(1)).chain(['…']).collect())
}

/// `User: arn:aws:sts::1:assumed-role/NAME/SESSION` becomes `User: …/NAME/…`.
fn without_session(user: &str) -> String {
    let Some((arn, role)) = user.rsplit_once(":assumed-role/") else { return user.to_owned() };
    let name = role.split('/').next().unwrap_or(role);
    let front = arn.rsplit_once(' ').map_or(String::new(), |(front, _)| format!("{front} "));
    format!("{front}…/{name}/…")
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Denial<'w> {
    pub(crate) call: &'w str,
    role: Option<&'w str>,
}

pub(crate) fn of(fact: &Fact) -> Option<Denial<'_>> {
    let named = |name: &str| fact.names.get(name).map(String::as_str);
    Some(Denial { call: named("call")?, role: named("role") })
}

impl Denial<'_> {
    /// A clause: "role karpenter is not allowed to call ec2:CreateFleet".
    pub(crate) fn in_words(&self) -> String {
        match self.role {
            Some(role) => format!("role {role} is not allowed to call {}", self.call),
            None => format!("the call is {}", self.call),
        }
    }

    pub(crate) fn fix(&self) -> String {
        let whose = self.role.map_or_else(|| "the role that makes the call".to_owned(), |role| format!("role {role}"));
        format!(
            "Allow {} in a policy of {whose}. If a policy allows it already, change the condition that the call does \
             not meet. Neither disrupts nodes.",
            self.call
        )
    }

    /// Karpenter's published policy allows this only on certain tags, so Karpenter cannot terminate what lacks them.
    /// Source: karpenter-provider-aws v1.14.1
    /// website/content/en/preview/getting-started/getting-started-with-karpenter/ cloudformation.yaml
    /// `AllowScopedDeletion`; v0.32 on.
    pub(crate) fn asking_for_tags(&self, case: &Case, finding: Finding) -> Finding {
        if !["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"].contains(&self.call) {
            return finding;
        }
        let cluster = case.cluster_name().unwrap_or("CLUSTER");
        let finding = finding.fix(format!(
            "Allow {} in the policy of Karpenter's role. The published policy allows it only on resources with the \
             tags kubernetes.io/cluster/{cluster}=owned and karpenter.sh/nodepool. If the call works for other \
             resources, add these tags to this one, or widen the condition.",
            self.call
        ));
        let finding = match case.instance_id() {
            Some(id) => finding.inspect(
                "See which tags the instance has",
                format!("aws ec2 describe-tags --filters Name=resource-id,Values={id}"),
            ),
            None => finding,
        };
        finding.with_all(case.claim.and_then(|claim| older_than_pool(case, claim)))
    }
}

/// It is older than its NodePool, so a Karpenter that set other tags created it.
/// Source: <https://karpenter.sh/v0.32/upgrading/v1beta1-migration/>; aws/karpenter-provider-aws#6302.
fn older_than_pool(case: &Case, claim: &NodeClaim) -> Option<Evidence> {
    let pool = case.cluster.pool(claim.node_pool()?)?;
    let (made, of_pool) = (claim.metadata.creation_timestamp?, pool.metadata.creation_timestamp?);
    (made < of_pool).then(|| {
        Evidence::new(
            format!("NodePool/{}", pool.name()),
            "metadata.creationTimestamp",
            crate::case::timestamp(of_pool).to_string(),
            format!(
                "the machine was launched at {}: that version of Karpenter may have set other tags",
                crate::case::timestamp(made)
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::{ENCODED, shortened};

    const BEGIN: &str = "creating instance, with fleet error(s), UnauthorizedOperation: You are not authorized to \
                         perform this operation. ";

    #[test]
    fn a_denial_keeps_the_call_and_the_resource() {
        let user = "User: arn:aws-cn:sts::494949494949:assumed-role/Karpenter-cn/1729663020114427393";
        let call = "is not authorized to perform: iam:PassRole on resource: arn:aws-cn:iam::494949494949:role/node";
        let message = format!("{BEGIN}{user} {call}");
        let kept = format!("{BEGIN}User: …/Karpenter-cn/… {call}");
        assert_eq!(shortened(&message, 240).as_deref(), Some(kept.as_str()));
        let kept = format!("… User: …/Karpenter-cn/… {call}");
        assert_eq!(shortened(&message, 160).as_deref(), Some(kept.as_str()));
        let cut = shortened(&message, 60).expect("a denial");
        assert_eq!(cut, "… User: …/Karpenter-cn/… is not authorized to perform: iam:…");
    }

    #[test]
    fn the_encoded_message_is_left_out() {
        let message = format!(
            "User: arn:aws:sts::1:assumed-role/k/s is not authorized to perform: ec2:RunInstances on resource: r \
             because no policy allows it. {ENCODED}{} status code: 403",
            "x".repeat(600)
        );
        let kept = "User: …/k/… is not authorized to perform: ec2:RunInstances on resource: r because no policy allows \
                    it. Encoded authorization failure message: … status code: 403";
        assert_eq!(shortened(&message, 240).as_deref(), Some(kept));
    }

    #[test]
    fn other_messages_and_users_stay() {
        assert_eq!(shortened("InsufficientInstanceCapacity: none", 10), None);
        let user = "User: arn:aws:iam::1:user/ops is not authorized to perform: ec2:RunInstances";
        assert_eq!(shortened(user, 240).as_deref(), Some(user));
    }
}
