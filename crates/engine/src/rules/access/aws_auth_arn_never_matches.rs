//! aws-auth has an entry for the node role, but with an ARN that no caller ever has.

use crate::explain::commands;
use crate::facts::aws_auth_role;
use crate::rules::prelude::*;
use readers::aws_auth::{Miss, Verdict};

rule! {
    cause: AwsAuthArnNeverMatches,
    summary: "The node role's ARN in aws-auth has a path, is an instance profile's, or is malformed, so it matches no \
              caller",
    stages: [Join],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Deployments, AwsObservations,
    ],
    lint: true,
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
}

fn check(case: &Case) -> Option<Opinion> {
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
            return None;
        }
        // A role behind a profile usually has the profile's name. Only these mistakes are certain for it: its own ARN
        // may be in another entry.
        Verdict::NearMiss { miss, .. }
            if question.profile_only && !matches!(miss, Miss::InstanceProfileArn | Miss::PathInArn) =>
        {
            return None;
        }
        Verdict::NearMiss { entry, miss } => (entry, miss),
        _ => {
            return Some(Opinion::ruled_out(
                question.auth,
                format!("the ARN of {role} in aws-auth has a form that matches"),
            ));
        }
    };
    let like = Some(entry.role_arn.as_str()).filter(|_| !matches!(miss, Miss::OtherAccount | Miss::OtherPartition));
    let arn = commands::role_arn(if question.profile_only { "NODE_ROLE" } else { role }, like);
    let why = miss.why()?;
    Finding::new(
        question.confidence(),
        format!(
            "The ARN {} in ConfigMap aws-auth {why}. It never matches a caller, so {role} is not mapped.",
            entry.role_arn
        ),
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            entry.role_arn.clone(),
            "the authenticator compares whole ARNs and never checks their syntax",
        ),
    )
    .blaming(
        Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(&question.auth.map_roles, entry.arn_span),
    )
    .fix(format!("Write the ARN as {arn}, without a path, even if the role has one."))
    .change(
        format!("Correct the entry in mapRoles to: {}", commands::map_role(&arn)),
        commands::EDIT_AWS_AUTH.to_owned(),
    )
    .into()
}
