//! aws-auth has an entry for the node role, but the entry does not authorize a node.

use crate::explain::commands;
use crate::facts::aws_auth_role;
use crate::facts::slip::is_slip;
use crate::facts::{node_role, role_in_use};
use crate::objects::ReviewStatus;
use crate::rules::prelude::*;
use readers::aws_auth::identity::Identity;
use readers::aws_auth::{BOOTSTRAPPERS_GROUP, NODES_GROUP, RoleMapping, UsernameFlaw, Verdict, WINDOWS_GROUP};

rule! {
    cause: AwsAuthEntryIncomplete,
    summary: "The node role's entry in aws-auth lacks groups or a node's username, or the authenticator drops it",
    stages: [Join],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Deployments, AccessReviews,
        AwsObservations,
    ],
    lint: true,
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
}

/// RBAC binds groups, and users with a fixed name. The groups that AWS documents for nodes give no right to create
/// Nodes.
fn may_be_bound(entry: &RoleMapping) -> bool {
    let documented = [BOOTSTRAPPERS_GROUP, NODES_GROUP, WINDOWS_GROUP];
    entry.groups.iter().any(|group| !group.is_empty() && !documented.contains(&group.as_str()))
        || !entry.username.is_empty() && !entry.username.contains("{{")
}

fn username_fault(entry: &RoleMapping, flaw: &UsernameFlaw) -> String {
    match flaw {
        UsernameFlaw::Empty => "has no username".to_owned(),
        UsernameFlaw::NoNodePrefix => {
            format!("has the username {:?}, which does not begin with system:node:", entry.username)
        }
        UsernameFlaw::UnknownTemplate(template) => {
            format!("has {template} in its username, which is not a template of the authenticator")
        }
        UsernameFlaw::NotTheNodeName => format!("gives every node the username {:?}", entry.username),
    }
}

fn check(case: &Case) -> Option<Opinion> {
    if let Some(found) = named_by_session(case).or_else(|| bootstrappers_misspelt(case)) {
        return found.into();
    }
    let question = match aws_auth_role::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    let role = question.role;
    let text = &question.auth.map_roles;
    let verdict = question.auth.read.judge(role);
    let (span, why, because) = match &verdict {
        Verdict::Mapped(_) => {
            let because = format!("aws-auth maps {role} to a node's username and to {NODES_GROUP}");
            return Some(Opinion::ruled_out(question.auth, because));
        }
        Verdict::MissingGroups { entry, missing } => (
            entry.groups_span.unwrap_or(entry.span),
            format!("lacks the {} {}", if missing.len() > 1 { "groups" } else { "group" }, missing.join(" and ")),
            "without system:nodes the kubelet is authenticated but is not a node: it has only the rights that RBAC \
             gives its groups",
        ),
        Verdict::WrongUsername { entry, flaw } => (
            entry.username_span.unwrap_or(entry.span),
            username_fault(entry, flaw),
            "a kubelet is a node only as system:node:NAME, with the name of its own Node",
        ),
        Verdict::Shadowed { by, .. } => (
            by.span,
            "is replaced by a later entry with the same ARN".to_owned(),
            "if two entries have one ARN, the last one wins, and the authenticator does not merge their groups",
        ),
        Verdict::Dropped { defect } => (
            defect.span,
            format!("is dropped: {}", defect.message),
            "the authenticator drops such an entry, and nothing in the cluster shows it",
        ),
        Verdict::NearMiss { .. } | Verdict::Broken(_) | Verdict::Unmapped => return None,
    };
    let arn = commands::role_arn(
        if question.profile_only { "NODE_ROLE" } else { role },
        question.auth.read.roles.first().map(|entry| entry.role_arn.as_str()),
    );
    let mut finding = Finding::new(
        question.confidence(),
        format!(
            "The entry of the node role {role} in ConfigMap aws-auth {why}, so its kubelets cannot register Nodes."
        ),
        Evidence::new("ConfigMap/aws-auth", "data.mapRoles", readers::source_text::quoted(text, span), because),
    );
    if let Some(entry) = aws_auth_role::in_force(&verdict) {
        let identity = Identity::of_entry(entry);
        match case.cluster.access(&identity) {
            _ if identity.is_node() => {}
            _ if identity.may_do_everything() => {
                let because =
                    format!("the entry of {role} {why}, but its groups may do everything, including creating Nodes");
                return Some(Opinion::ruled_out(question.auth, because));
            }
            Some(review @ ReviewStatus { allowed: true, reason, .. }) => {
                let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                let because =
                    format!("the entry of {role} {why}, but the API server allows {identity} to create Nodes{reason}");
                return Some(Opinion::ruled_out(review, because));
            }
            Some(denied) => {
                let said =
                    ["false", &denied.reason, &denied.evaluation_error].into_iter().filter(|text| !text.is_empty());
                let said = said.collect::<Vec<_>>().join(": ");
                finding = finding.with(Evidence::new(
                    "SubjectAccessReview",
                    "status.allowed",
                    said,
                    format!("the API server says that {identity} is not allowed to create Nodes"),
                ));
            }
            None => {
                if may_be_bound(entry) {
                    finding.confidence = finding.confidence.min(Confidence::Likely);
                }
                let why = case.cluster.missing(Input::AccessReviews).unwrap_or("nodewhy did not ask");
                finding = finding.unknown(
                    format!(
                        "Does RBAC still allow {identity} to create Nodes? nodewhy could not ask the API server here: \
                         {why}."
                    ),
                    identity.command(),
                );
            }
        }
    }
    finding
        .blaming(
            Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles").at(text, span),
        )
        .fix(
            "Give the entry the username system:node:{{EC2PrivateDNSName}} and the groups system:bootstrappers and \
             system:nodes.",
        )
        .change(
            format!("Keep only one entry for the role in mapRoles, and change it to: {}", commands::map_role(&arn)),
            commands::EDIT_AWS_AUTH.to_owned(),
        )
        .into()
}

/// The session of an instance's role is named after the instance's id. The images of these families call the Node by
/// EC2's private DNS name, unless user data says otherwise.
/// Sources: aws-iam-authenticator @81b1dab pkg/server/server.go `renderTemplate`; amazon-eks-ami v20251112
/// nodeadm/internal/api/status.go, templates/al2/runtime/bin/private-dns-name; Bottlerocket
/// `settings.kubernetes.hostname-override-source`.
fn named_by_session(case: &Case) -> Option<Finding> {
    let role = node_role::name(case).filter(|_| case.stage() == Stage::Join)?;
    let mapping = aws_auth_role::by_session(case, role)?;
    let username = &mapping.entry.username;
    // An image of the user's own may name its Node as it likes.
    let has_image_of_aws = case.class()?.has_alias();
    let is_named_by_id = case.user_data_naming(&["InstanceIdNodeName", "hostname-override"]).is_some();
    if !has_image_of_aws || is_named_by_id {
        return None;
    }
    if role_in_use::works(case, &role_in_use::running(case, role)).is_some() {
        return None;
    }
    let confidence = if aws_auth_role::by_entries(case) { Confidence::Possible } else { Confidence::Likely };
    let finding = Finding::new(
        confidence,
        format!(
            "The entry of the node role {role} in ConfigMap aws-auth has the username {username}, so the API server \
             knows each kubelet by its instance's id. These kubelets name their Nodes after EC2's private DNS name, so \
             the API server does not let them create their Nodes."
        ),
        mapping.evidence(),
    )
    .blaming(mapping.blame())
    .fix(
        "Change the username of the entry to system:node:{{EC2PrivateDNSName}}. system:node:{{SessionName}} is for \
         Fargate, and for nodes that are named after the instance's id.",
    )
    .change("Correct the entry", commands::EDIT_AWS_AUTH.to_owned())
    .unknown(
        "Did the kubelet log that it is not allowed to modify its Node?",
        "aws ec2 get-console-output --latest --output text --instance-id INSTANCE",
    );
    Some(finding)
}

/// A group that differs from system:bootstrappers by a letter.
fn misspelt(entry: &RoleMapping) -> Option<&str> {
    let has = |wanted: &str| entry.groups.iter().any(|group| group == wanted);
    let slip = entry.groups.iter().find(|group| is_slip(group, BOOTSTRAPPERS_GROUP))?;
    (!has(BOOTSTRAPPERS_GROUP)).then_some(slip)
}

/// Upstream's source says that an EKS kubelet does not need that group, because IAM is its first credential. A report
/// says that nodes joined after the group was spelt right (awslabs/cdk-eks-blueprints#1179), and such a misspelling is
/// never intended.
fn bootstrappers_misspelt(case: &Case) -> Option<Finding> {
    let role = node_role::name(case).filter(|_| case.stage() == Stage::Join)?;
    let auth = case.cluster.aws_auth().filter(|_| case.goes_by(Input::AwsAuth))?;
    let Verdict::Mapped(entry) = auth.read.judge(role) else { return None };
    let text = &auth.map_roles;
    // A running node with the role shows that the group does not matter.
    if role_in_use::works(case, &role_in_use::running(case, role)).is_some() {
        return None;
    }
    let group = misspelt(entry)?;
    let span = entry.groups_span.unwrap_or(entry.span);
    let finding = Finding::new(
        Confidence::Possible,
        format!(
            "The entry of the node role {role} in ConfigMap aws-auth names the group {group:?}, which has no binding, \
             instead of {BOOTSTRAPPERS_GROUP}. Upstream's source says that {NODES_GROUP} alone is enough for a \
             kubelet. If nothing else is found, correct this first."
        ),
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            readers::source_text::quoted(text, span),
            "a misspelt group gives no rights, and nothing reports it",
        ),
    )
    .blaming(
        Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles").at(text, span),
    )
    .fix(format!("Correct the group to {BOOTSTRAPPERS_GROUP}."))
    .change("Correct the entry", commands::EDIT_AWS_AUTH.to_owned())
    .unknown(
        "Did the instance print an error while it booted?",
        "aws ec2 get-console-output --latest --output text --instance-id INSTANCE",
    );
    Some(finding)
}
