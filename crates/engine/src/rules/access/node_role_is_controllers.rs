//! The node class gives nodes the role of Karpenter's own controller.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::explain::commands;
use crate::facts::controller_role;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NodeRoleIsControllers",
    summary: "spec.role of the EC2NodeClass is the role of Karpenter's controller",
    stages: &[Stage::Launch, Stage::Join],
    reads: &[Input::NodeClaims, Input::NodeClasses, Input::ServiceAccounts],
    lint: true,
    versions: "all, if Karpenter gets its role through IRSA",
    page: include_str!("../../../pages/NodeRoleIsControllers.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some((account, arn)) = controller_role::as_node_role(case) else { return Opinion::Silent };
    let Some(class) = case.class() else { return Opinion::Silent };
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Opinion::ruled_out(sibling, format!("NodeClaim {} joined with this role", sibling.name()));
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
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.role"))
    .fix(format!(
        "Set spec.role of {} {name} to the node role (often KarpenterNodeRole-CLUSTER). Never map the controller's \
         role in aws-auth or with an access entry: every pod on those nodes could then launch and terminate instances.",
        class.kind
    ))
    .step(
        Risk::Inspect,
        "See the controller's role",
        Some(format!("kubectl get serviceaccount -n {namespace} {} -o yaml", account.metadata.name)),
    )
    .step(Risk::Mutating, "Give the nodes their own role", Some(commands::edit(class)))
    .ask_aws(
        format!("Does {arn} trust ec2.amazonaws.com?"),
        format!(
            "aws iam get-role --role-name {} --query Role.AssumeRolePolicyDocument",
            arn.rsplit('/').next().unwrap_or(arn)
        ),
    )
    .into()
}
