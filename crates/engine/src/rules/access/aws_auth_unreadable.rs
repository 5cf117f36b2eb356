//! The authenticator cannot parse mapRoles at all, so every role mapping is gone at once.

use crate::explain::commands;
use crate::facts::aws_auth_role;
use crate::rules::prelude::*;
use readers::aws_auth::Verdict;
use readers::source_text;

rule! {
    cause: AwsAuthUnreadable,
    summary: "mapRoles of the aws-auth ConfigMap is broken YAML, so no role is mapped any more",
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
    let Verdict::Broken(broken) = question.auth.read.judge(question.role) else {
        return None;
    };
    let text = &question.auth.map_roles;
    let place = source_text::position(text, broken.span.start);
    Finding::new(
        question.confidence(),
        format!(
            "The authenticator cannot read mapRoles of ConfigMap aws-auth (line {}: {}), so no role is mapped, not \
             even {}.",
            place.line, broken.message, question.role
        ),
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            broken.message.clone(),
            "one such mistake drops every mapping at once, and only the authenticator's log reports it",
        ),
    )
    .blaming(
        Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(text, broken.span),
    )
    .fix("Correct mapRoles of ConfigMap aws-auth. The mappings work again within seconds.")
    .change(format!("Correct line {} of mapRoles", place.line), commands::EDIT_AWS_AUTH.to_owned())
    .into()
}
