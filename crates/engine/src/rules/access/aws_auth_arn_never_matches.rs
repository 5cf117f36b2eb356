//! aws-auth has an entry about the node role, under an ARN that no caller ever has.

use crate::api::{Blame, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::aws_auth_role;
use crate::rules::shared::commands;
use readers::aws_auth::{Miss, Verdict};

pub static RULE: Rule = Rule {
    cause: "AwsAuthArnNeverMatches",
    summary: "The node role's ARN in aws-auth has a path, is an instance profile's, or is malformed, so it matches nobody",
    stages: &[Stage::Join],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodeClasses,
        Input::AwsAuth,
        Input::Events,
        Input::CertificateSigningRequests,
        Input::Deployments,
        Input::AwsObservations,
    ],
    lint: true,
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
    page: include_str!("../../../pages/AwsAuthArnNeverMatches.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let question = match aws_auth_role::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let role = question.role;
    let (entry, miss) = match question.auth.read.judge(role) {
        Verdict::NearMiss { miss: Miss::Similar { .. }, .. }
        | Verdict::Unmapped
        | Verdict::Broken(_)
        | Verdict::Dropped { .. } => {
            return Opinion::Silent;
        }
        // Of the role behind a profile, which mostly has its name, only these mistakes are known: its own ARN may stand
        // elsewhere.
        Verdict::NearMiss { miss, .. }
            if question.profile_only && !matches!(miss, Miss::InstanceProfileArn | Miss::PathInArn) =>
        {
            return Opinion::Silent;
        }
        Verdict::NearMiss { entry, miss } => (entry, miss),
        _ => {
            return Opinion::ruled_out(
                question.auth,
                format!("the ARN of {role} in aws-auth has the form that matches"),
            );
        }
    };
    let like = Some(entry.role_arn.as_str()).filter(|_| !matches!(miss, Miss::OtherAccount | Miss::OtherPartition));
    let arn = commands::role_arn(if question.profile_only { "NODE_ROLE" } else { role }, like);
    let why = match miss {
        Miss::PathInArn => "has an IAM path, which STS leaves out".to_owned(),
        Miss::InstanceProfileArn => "is an instance profile's, and callers have the ARN of the role".to_owned(),
        Miss::AssumedRoleArn => "is an assumed role's, and the authenticator compares with the role's own".to_owned(),
        Miss::Blank => "has white space around it, which is part of it".to_owned(),
        Miss::NotAnArn => "is no ARN".to_owned(),
        Miss::Malformed(why) => format!("is malformed: {why}"),
        Miss::OtherAccount => "is of another account".to_owned(),
        Miss::OtherPartition => "is of another partition".to_owned(),
        Miss::Similar { .. } => return Opinion::Silent,
    };
    Finding::new(
        question.confidence(),
        format!(
            "The ARN {} in ConfigMap aws-auth {why}, so it never matches, and {role} is mapped to nothing.",
            entry.role_arn
        ),
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            entry.role_arn.clone(),
            "the authenticator compares whole ARNs, and never checks their syntax",
        ),
    )
    .blaming(
        Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(&question.auth.map_roles, entry.arn_span),
    )
    .fix(format!("Write the ARN as {arn}, without a path, also where the role has one."))
    .step(
        Risk::Mutating,
        format!("Correct the entry in mapRoles to: {}", commands::map_role(&arn)),
        Some(commands::EDIT_AWS_AUTH.to_owned()),
    )
    .into()
}
