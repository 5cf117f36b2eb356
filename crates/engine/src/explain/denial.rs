//! A call that AWS denies, as a log names it: the call and the role.

use crate::api::{Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::NodeClaim;
use logs::fact::Fact;

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
            Some(id) => finding.step(
                Risk::Inspect,
                "See which tags the instance has",
                Some(format!("aws ec2 describe-tags --filters Name=resource-id,Values={id}")),
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
