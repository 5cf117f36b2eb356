//! The node role has no policy that allows the instance to ask EC2 for its name.

use crate::cluster_state::aws::ROLE_POLICIES;
use crate::facts::{node_role, role_in_use};
use crate::objects::RolePolicies;
use crate::rules::prelude::*;
use readers::userdata::Family;

rule! {
    cause: NodeRoleLacksPolicy,
    summary: "The node role has no policy that permits ec2:DescribeInstances, which the instance calls before it joins",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Events, CertificateSigningRequests, AwsObservations],
    versions: "all; seen only if nodewhy may ask IAM (--aws)",
}

/// AWS's own policies for nodes that do not permit the call. Other policies are not evaluated.
/// Source: AWS managed policy reference, 2026-01.
const WITHOUT: &[&str] = &[
    "AmazonEKSWorkerNodeMinimalPolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEC2ContainerRegistryReadOnly",
    "AmazonSSMManagedInstanceCore",
    "CloudWatchAgentServerPolicy",
];

/// The node's role, if its image is known to ask EC2: nodeadm, bootstrap.sh and Bottlerocket's pluto do.
/// Source: amazon-eks-ami nodeadm/internal/aws/ec2, templates/al2/runtime/bootstrap.sh; bottlerocket sources/api/pluto.
pub fn role_in_question<'w>(case: &Case<'w>) -> Option<&'w str> {
    let asks = |family| matches!(family, Family::Al2 | Family::Al2023 | Family::Bottlerocket);
    case.class().filter(|class| class.is_ec2() && class.family().is_some_and(asks))?;
    node_role::name(case)
}

fn check(case: &Case) -> Option<Opinion> {
    let role = role_in_question(case)?;
    let aws = case.cluster.aws();
    let (policies, at) = aws.role_policies(role).known()?;
    if !lack(policies) {
        let is_meant = policies.attached.iter().any(|arn| name(arn) == "AmazonEKSWorkerNodePolicy");
        let because = format!("the node role {role} has AmazonEKSWorkerNodePolicy");
        let seen = aws.observation(ROLE_POLICIES, role).filter(|_| is_meant);
        return seen.map(|seen| Opinion::ruled_out(seen, because));
    }
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return Some(let_in.excludes(role));
    }
    let names: Vec<&str> = policies.attached.iter().map(|arn| name(arn)).collect();
    let shown = if names.is_empty() { "no policy at all".to_owned() } else { names.join(", ") };
    let partition = policies.attached.first().and_then(|arn| arn.split(':').nth(1)).unwrap_or("aws");
    Finding::new(
        Confidence::Likely,
        format!(
            "The node role {role} has {shown}, which does not permit ec2:DescribeInstances. The instance asks EC2 for \
             its name before it starts the kubelet, and EC2 denies the call."
        ),
        Evidence::new(
            format!("iam:ListAttachedRolePolicies {role}"),
            "AttachedPolicies",
            shown,
            "AmazonEKSWorkerNodePolicy is not among them, and the role has no inline policy or policy of your own",
        )
        .told_by_aws(at),
    )
    .blaming(Blame::object("", "IAMRole", role))
    .fix(format!(
        "Attach AmazonEKSWorkerNodePolicy to {role}. AmazonEKSWorkerNodeMinimalPolicy is for EKS Auto Mode, whose \
         nodes do not ask."
    ))
    .change(
        "Attach it",
        format!(
            "aws iam attach-role-policy --role-name {role} --policy-arn \
             arn:{partition}:iam::aws:policy/AmazonEKSWorkerNodePolicy"
        ),
    )
    .into()
}

fn lack(policies: &RolePolicies) -> bool {
    let of_aws = |arn: &String| arn.contains(":iam::aws:policy/") && WITHOUT.contains(&name(arn));
    policies.inline.is_empty() && policies.attached.iter().all(of_aws)
}

fn name(arn: &str) -> &str {
    arn.rsplit('/').next().unwrap_or(arn)
}
