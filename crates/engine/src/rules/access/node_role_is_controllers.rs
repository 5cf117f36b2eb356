//! The node class gives nodes the role of Karpenter's own controller.

use crate::explain::commands;
use crate::facts::controller_role;
use crate::rules::prelude::*;

rule! {
    cause: NodeRoleIsControllers,
    summary: "spec.role of the EC2NodeClass is the role of Karpenter's controller",
    stages: [Launch, Join],
    reads: [NodeClaims, NodeClasses, ServiceAccounts],
    lint: true,
    versions: "all, if Karpenter gets its role through IRSA",
}

fn check(case: &Case) -> Option<Opinion> {
    let (account, arn) = controller_role::as_node_role(case)?;
    let class = case.class()?;
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(sibling, format!("NodeClaim {} joined with this role", sibling.name())));
    }
    let (name, namespace) = (class.name(), account.metadata.namespace.as_deref().unwrap_or("kube-system"));
    Finding::new(
        Confidence::Likely,
        format!(
            "{} {name} gives its nodes {arn}, the role of Karpenter's controller. EC2 is not allowed to assume it, so \
             the instances have no credentials and cannot join.",
            class.kind
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            "spec.role",
            class.spec.role.clone().unwrap_or_default(),
            "the nodes get this role",
        ),
    )
    .with(Evidence::new(
        format!("ServiceAccount/{}", account.metadata.name),
        "metadata.annotations['eks.amazonaws.com/role-arn']",
        arn,
        "a role for IRSA trusts a ServiceAccount, not ec2.amazonaws.com",
    ))
    .blaming(Blame::class(class).field("spec.role"))
    .fix(format!(
        "Set spec.role of {} {name} to the node role (often KarpenterNodeRole-CLUSTER). Never map the controller's \
         role in aws-auth or with an access entry: every pod on those nodes could then launch and terminate instances.",
        class.kind
    ))
    .inspect(
        "See the controller's role",
        format!("kubectl get serviceaccount -n {namespace} {} -o yaml", account.metadata.name),
    )
    .change("Give the nodes their own role", commands::edit(class))
    .ask_aws(
        format!("Does {arn} trust ec2.amazonaws.com?"),
        format!(
            "aws iam get-role --role-name {} --query Role.AssumeRolePolicyDocument",
            arn.rsplit('/').next().unwrap_or(arn)
        ),
    )
    .into()
}
