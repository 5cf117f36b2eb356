//! The instance profile gives the instance no role, so its kubelet has no credentials for the API server.

use crate::cluster_state::aws::{AwsAnswer, PROFILE};
use crate::explain::repair;
use crate::facts::node_role;
use crate::objects::InstanceProfile;
use crate::rules::prelude::*;
use chrono::{DateTime, Utc};
use readers::userdata::Family;

rule! {
    cause: MachineGetsNoCredentials,
    summary: "The instance profile is gone or has no role, or the role does not let EC2 hand out its credentials",
    stages: [Join],
    reads: [NodeClasses, AwsObservations],
    versions: "all; seen only if nodewhy may ask IAM (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let profile = node_role::profile_name(case)?;
    let aws = case.cluster.aws();
    match aws.instance_profile(profile) {
        // EC2 returned an instance of the cluster, so the account is the right one.
        AwsAnswer::Absent(at) if aws.sees_instances() => gone(case, profile, at).into(),
        AwsAnswer::Found(InstanceProfile { role_arn: None, .. }, at) => empty(case, profile, at).into(),
        AwsAnswer::Found(InstanceProfile { role_arn: Some(arn), ec2_may_assume: Some(false), .. }, at) => {
            not_trusted(case, profile, arn, at).into()
        }
        AwsAnswer::Found(InstanceProfile { role_arn: Some(arn), ec2_may_assume: Some(true), .. }, _) => {
            let because = format!("the instance profile {profile} has the role {arn}, which EC2 may assume");
            aws.observation(PROFILE, profile).map(|seen| Opinion::ruled_out(seen, because))
        }
        AwsAnswer::Found(..) | AwsAnswer::Absent(_) | AwsAnswer::NotAsked | AwsAnswer::Refused(_) => None,
    }
}

/// EKS kubelets authenticate with the credentials of the node role. The behavior of your own bootstrap is unknown.
fn confidence(case: &Case) -> Confidence {
    let own = case.class().is_none_or(|class| class.family() == Some(Family::Custom));
    if own { Confidence::Likely } else { Confidence::Certain }
}

const SO: &str = "so the instance has no credentials, and its kubelet cannot join";

fn gone(case: &Case, profile: &str, at: Option<DateTime<Utc>>) -> Finding {
    let role = case.class().and_then(|class| class.spec.role.as_deref()).unwrap_or("ROLE");
    let finding = Finding::new(
        confidence(case),
        format!("The instance profile {profile} of the instance is gone, {SO}."),
        seen(
            profile,
            "InstanceProfile",
            "IAM does not know it".to_owned(),
            "EC2 hands out the role of the profile",
            at,
        ),
    )
    .blaming(Blame::object("", "InstanceProfile", profile))
    .fix(
        "Recreate the instance profile with the node role in it, or name another profile in the node class. Then \
         replace the instance.",
    )
    .change(
        "Recreate the instance profile",
        format!("aws iam create-instance-profile --instance-profile-name {profile}"),
    )
    .change(
        "Add the node role to it",
        format!("aws iam add-role-to-instance-profile --instance-profile-name {profile} --role-name {role}"),
    );
    repair::or_replace(case, finding)
}

fn empty(case: &Case, profile: &str, at: Option<DateTime<Utc>>) -> Finding {
    let role = case.class().and_then(|class| class.spec.role.as_deref()).unwrap_or("ROLE");
    Finding::new(
        confidence(case),
        format!("The instance profile {profile} of the instance has no role, {SO}."),
        seen(
            profile,
            "InstanceProfile.Roles",
            "none".to_owned(),
            "IAM takes a role out of its profiles before it deletes it",
            at,
        ),
    )
    .blaming(Blame::object("", "InstanceProfile", profile))
    .fix(format!(
        "Add the node role to the instance profile {profile}. If the role was deleted, recreate it first, and its \
         access entry too."
    ))
    .change(
        "Add the role to the profile",
        format!("aws iam add-role-to-instance-profile --instance-profile-name {profile} --role-name {role}"),
    )
}

fn not_trusted(case: &Case, profile: &str, arn: &str, at: Option<DateTime<Utc>>) -> Finding {
    let role = arn.rsplit('/').next().unwrap_or(arn);
    Finding::new(
        confidence(case),
        format!("The trust policy of the node role {role} does not let EC2 assume it, {SO}."),
        seen(
            profile,
            "InstanceProfile.Roles[0].AssumeRolePolicyDocument",
            "ec2.amazonaws.com is not among its principals".to_owned(),
            "EC2 assumes the role for the instance",
            at,
        ),
    )
    .blaming(Blame::object("", "IAMRole", role))
    .fix(format!("Change the trust policy of {role} to allow sts:AssumeRole to the service ec2.amazonaws.com."))
    .inspect(
        "See which principals it trusts",
        format!("aws iam get-role --role-name {role} --query Role.AssumeRolePolicyDocument"),
    )
    .change(
        "Correct it",
        format!("aws iam update-assume-role-policy --role-name {role} --policy-document file://trust.json"),
    )
}

fn seen(
    profile: &str,
    field: &'static str,
    observed: String,
    because: &'static str,
    at: Option<DateTime<Utc>>,
) -> Evidence {
    Evidence::new(format!("iam:GetInstanceProfile {profile}"), field, observed, because).told_by_aws(at)
}
