//! A node class was deleted. Karpenter waits until no NodeClaim uses it, then deletes what it created for it in AWS,
//! and only then removes its finalizer.
//!
//! Sources: karpenter-provider-aws pkg/controllers/nodeclass/termination/controller.go `finalize` (v1.0.8),
//! pkg/controllers/nodeclass/controller.go `finalize` (v1.14.1).

use super::finalizers::class_held_by_other;
use super::{head, machine};
use crate::explain::commands;
use crate::objects::{NodeClaim, NodeClass};
use crate::rules::prelude::*;
use crate::upstream::karpenter::CLASS_TERMINATION_FINALIZER;

pub(super) fn held(case: &Case, class: &NodeClass) -> Option<Opinion> {
    if case.cluster.missing(Input::NodeClaims).is_some() {
        return None;
    }
    let mut claims: Vec<&NodeClaim> = case.cluster.claims_of_class(&class.kind, class.name()).collect();
    claims.sort_by_key(|claim| claim.metadata.deletion_timestamp);
    if !claims.is_empty() {
        let held = claims.iter().find_map(|claim| for_machine(case, claim)).or_else(|| for_orphan(case, &claims));
        return held?.into();
    }
    let whole = case.wait.since.checked_add_signed(case.wait.proven * 2);
    if let Some(whole) = whole.filter(|at| *at > case.now) {
        return Some(Opinion::LookAgain(whole));
    }
    if !class.is_ec2() || case.karpenter().is_some_and(|karpenter| karpenter.stopped.is_some()) {
        return None;
    }
    class_held_by_other(case, class).unwrap_or_else(|| for_aws(case, class)).into()
}

/// If a machine of the class is held, the class is held too.
fn for_machine(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    let Some(Opinion::Found(mut found)) = machine(&case.of_leaving(claim)?) else { return None };
    found.summary = format!("{}, because a NodeClaim still uses it. {}", head(case), found.summary);
    Some(found.with(case.wait.evidence.clone()))
}

/// Karpenter deletes no NodeClaim because of its class, and replaces none if its NodePool is gone. It may expire, in
/// weeks.
/// Source: core pkg/controllers/disruption/types.go `NewCandidate` (v1.14.3).
fn for_orphan(case: &Case, claims: &[&NodeClaim]) -> Option<Finding> {
    if case.cluster.missing(Input::NodePools).is_some() {
        return None;
    }
    let lives_on = |claim: &&&NodeClaim| claim.metadata.deletion_timestamp.is_none();
    let pool_of =
        |claim: &NodeClaim| claim.node_pool().filter(|pool| case.cluster.pool(pool).is_none()).map(str::to_owned);
    let (claim, pool) = claims.iter().filter(lives_on).find_map(|claim| Some((claim, pool_of(claim)?)))?;
    let name = claim.name();
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}, because NodeClaim {name} still uses it. Nothing has deleted that NodeClaim: its NodePool {pool} \
                 is gone without it.",
                head(case)
            ),
            Evidence::new(
                format!("NodeClaim/{name}"),
                r#"metadata.labels["karpenter.sh/nodepool"]"#,
                pool.clone(),
                "there is no such NodePool, and Karpenter only disrupts nodes whose NodePool exists",
            ),
        )
        .with(case.wait.evidence.clone())
        .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name))
        .fix(
            "Delete the NodeClaims that are left: Karpenter drains their nodes, terminates the instances, and then \
             releases the class. Or create NodePool and class again, which disrupts nothing.",
        )
        .inspect(
            "See the NodeClaims of the NodePool",
            format!("kubectl get nodeclaims -l karpenter.sh/nodepool={pool} -o wide"),
        )
        .destroy("Delete it. Its node is drained", format!("kubectl delete nodeclaim {name}")),
    )
}

/// No NodeClaim is left, so Karpenter calls AWS next.
fn for_aws(case: &Case, class: &NodeClass) -> Finding {
    let name = class.name();
    let calls = "iam:ListInstanceProfiles (since 1.8), iam:GetInstanceProfile, iam:RemoveRoleFromInstanceProfile, \
                 iam:DeleteInstanceProfile, ec2:DescribeLaunchTemplates, ec2:DeleteLaunchTemplate";
    Finding::new(
        Confidence::Likely,
        format!(
            "{}, though no NodeClaim uses it: before Karpenter removes its finalizer {CLASS_TERMINATION_FINALIZER}, it \
             must delete the instance profile and the launch templates that it created for the class, and that fails.",
            head(case)
        ),
        case.wait.evidence.clone(),
    )
    .blaming(Blame::class(class).field("metadata.finalizers"))
    .fix(format!(
        "Read Karpenter's log for the class: AWS denies a call. Allow its role {calls}. If another tool put a role \
         into an instance profile, remove that role there. Karpenter then continues by itself."
    ))
    .inspect("See which call fails", format!("{} | grep {name}", commands::karpenter_log(case)))
    .unknown("Which call does AWS deny?", format!("{} | grep {name}", commands::karpenter_log(case)))
}
