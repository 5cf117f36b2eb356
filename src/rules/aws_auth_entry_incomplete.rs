//! aws-auth has an entry for the node role, but it makes no node of the kubelet.

use super::{Rule, node_role};
use crate::api::{Blame, Risk, Stage};
use crate::aws_auth::{NODES_GROUP, UsernameFlaw, Verdict};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "AwsAuthEntryIncomplete",
    summary: "The node role's entry in aws-auth lacks groups or a node's username, or the authenticator drops it",
    stages: &[Stage::Join],
    reads: &[Input::AwsAuth, Input::NodeClasses, Input::NodeClaims],
    versions: "clusters whose authentication mode includes the ConfigMap",
    page: include_str!("../../docs/causes/AwsAuthEntryIncomplete.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let question = match node_role::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let role = question.role;
    let text = &question.auth.map_roles;
    let (span, why, because) = match question.auth.read.judge(role) {
        Verdict::Mapped(_) => return Opinion::RuledOut(format!("aws-auth maps {role} to a node's username and to {NODES_GROUP}")),
        Verdict::MissingGroups { entry, missing } => (
            entry.groups_span.unwrap_or(entry.span),
            format!("lacks the {} {}", if missing.len() > 1 { "groups" } else { "group" }, missing.join(" and ")),
            "without system:nodes the kubelet is authenticated, but is no node: everything it asks is forbidden",
        ),
        Verdict::WrongUsername { entry, flaw } => (
            entry.username_span.unwrap_or(entry.span),
            match flaw {
                UsernameFlaw::Empty => "has no username".to_owned(),
                UsernameFlaw::NoNodePrefix => format!("has the username {:?}, which does not begin with system:node:", entry.username),
                UsernameFlaw::UnknownTemplate(template) => {
                    format!("has {template} in its username, which is no template of the authenticator")
                }
                UsernameFlaw::NotTheNodeName => format!("gives every machine the username {:?}", entry.username),
            },
            "a kubelet is a node only as system:node:NAME with its own Node's name",
        ),
        Verdict::Shadowed { by, .. } => (
            by.span,
            "is replaced by a later one of the same ARN".to_owned(),
            "of two entries with one ARN the last wins whole; groups are not merged",
        ),
        Verdict::Dropped { defect } => {
            (defect.span, format!("is dropped: {}", defect.message), "the authenticator drops such an entry without a word in the cluster")
        }
        Verdict::NearMiss { .. } | Verdict::Broken(_) | Verdict::Unmapped => return Opinion::Silent,
    };
    Finding::new(
        question.confidence(),
        format!("The entry of the node role {role} in ConfigMap aws-auth {why}, so its kubelets cannot register Nodes."),
        saw("ConfigMap/aws-auth", "data.mapRoles", crate::text::mask(span.of(text).lines().next().unwrap_or_default()), because),
    )
    .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles").at(text, span))
    .fix("Give the entry the username system:node:{{EC2PrivateDNSName}} and the groups system:bootstrappers and system:nodes.")
    .step(Risk::Mutating, "Complete the entry", Some("kubectl edit configmap -n kube-system aws-auth".to_owned()))
    .into()
}
