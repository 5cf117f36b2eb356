//! aws-auth maps other roles, but not the role of the nodes.

use crate::explain::commands;
use crate::facts::access_entry::{self, EntryState};
use crate::facts::aws_auth_role;
use crate::facts::controller_role;
use crate::facts::node_role;
use crate::facts::told_by_aws::or_ask;
use crate::rules::prelude::*;
use readers::aws_auth::{Miss, NODES_GROUP, RoleMapping, Verdict};

rule! {
    cause: NodeRoleNotMapped,
    summary: "The node role is mapped neither in aws-auth nor, as far as nodewhy can see, by an access entry",
    stages: [Join],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Deployments, ServiceAccounts,
        AwsObservations,
    ],
    versions: "all, in clusters whose authentication mode includes the ConfigMap",
}

/// What aws-auth maps instead of the node role: the role of Karpenter's controller, a name like it, or other roles.
fn summary(role: &str, controller: Option<&str>, similar: Option<&RoleMapping>, mapped: &str) -> String {
    match (controller, similar) {
        (Some(arn), _) => format!(
            "ConfigMap aws-auth maps {arn}, the role of Karpenter's controller, but not the node role {role}. The API \
             server rejects kubelets with this role."
        ),
        (None, Some(entry)) => format!(
            "ConfigMap aws-auth maps {}, but not the node role {role}. One of the names is misspelt, and the API \
             server rejects kubelets with this role.",
            entry.role_arn
        ),
        (None, None) => format!(
            "ConfigMap aws-auth does not map the node role {role}, so the API server rejects kubelets with this role. \
             aws-auth maps {mapped}."
        ),
    }
}

fn check(case: &Case) -> Option<Opinion> {
    let question = match aws_auth_role::ask(case) {
        Ok(question) => question,
        Err(answer) => return answer,
    };
    // A profile's name that is not mapped may belong to a role that is mapped under another name.
    if question.profile_only {
        return None;
    }
    // Mapping it would let every pod of a node launch instances.
    if controller_role::as_node_role(case).is_some() {
        return None;
    }
    let role = question.role;
    let auth = &question.auth.read;
    let similar = match auth.judge(role) {
        Verdict::Unmapped => None,
        Verdict::NearMiss { entry, miss: Miss::Similar { .. } } => Some(entry),
        Verdict::Broken(_) | Verdict::Dropped { .. } | Verdict::NearMiss { .. } => return None,
        _ => return Some(Opinion::ruled_out(question.auth, format!("aws-auth has an entry for {role}"))),
    };
    let node_entries: Vec<_> = auth.roles.iter().filter(|r| r.has_group(NODES_GROUP)).collect();
    // No node is authorized by aws-auth here: access entries are in use, and nodewhy cannot see whether one fits.
    if node_entries.is_empty() && similar.is_none() && !question.has_no_entry {
        return None;
    }
    let controller = case
        .cluster
        .service_accounts()
        .find_map(|s| s.role_arn().filter(|arn| auth.roles.iter().any(|r| r.role_arn.eq_ignore_ascii_case(arn))));
    let mapped = node_entries
        .iter()
        .map(|r| r.role_arn.rsplit('/').next().unwrap_or(&r.role_arn))
        .collect::<Vec<_>>()
        .join(", ");
    let mapped = if mapped.is_empty() { "no other node role".to_owned() } else { mapped };
    let confidence = match (question.has_no_entry, question.may_have_entry) {
        (true, _) => Confidence::Certain,
        (false, true) => Confidence::Possible,
        (false, false) => Confidence::Likely,
    };
    let summary = summary(role, controller, similar, &mapped);
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    let like = node_entries.first().copied().or(auth.roles.first()).map(|entry| entry.role_arn.as_str());
    let (arn, type_) = (commands::role_arn(role, like), access_entry::type_for(case));
    let finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            "ConfigMap/aws-auth",
            "data.mapRoles",
            format!("node roles: {mapped}"),
            format!("{role} is not among them"),
        ),
    )
    .with(node_role::shown(case, role))
    .fix(format!(
        "Map the node role {role} in aws-auth, with username system:node:{{{{EC2PrivateDNSName}}}} and groups \
         system:bootstrappers and system:nodes. Or create an access entry of type {type_} for it."
    ))
    .change(format!("Add this line to mapRoles: {}", commands::map_role(&arn)), commands::EDIT_AWS_AUTH.to_owned());
    let finding = if matches!(access_entry::entry_state(case, role), EntryState::NotRead) {
        finding
    } else {
        let command =
            format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {type_}");
        finding.change("Or authorize the role with an access entry, if the cluster reads them", command)
    };
    let finding = match access_entry::entry_state(case, role) {
        EntryState::Missing { at, .. } => finding.with(
            Evidence::new(
                format!("eks:ListAccessEntries {cluster}"),
                "accessEntries",
                format!("none for {role}"),
                "no access entry replaces the mapping",
            )
            .told_by_aws(at),
        ),
        EntryState::NotRead => finding.with(
            Evidence::new(
                format!("eks:DescribeCluster {cluster}"),
                "accessConfig.authenticationMode",
                "CONFIG_MAP",
                "no access entry replaces the mapping: this cluster reads none",
            )
            .told_by_aws(None),
        ),
        _ => or_ask(
            finding,
            case.cluster.aws().access_entry(cluster, role),
            format!(
                "Does an access entry exist for {role}? If the cluster uses access entries, aws-auth does not have to \
                 contain the role."
            ),
            format!("aws eks list-access-entries --cluster-name {cluster} --output text"),
            |_, _| None,
        ),
    };
    let blame = Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles");
    match similar {
        Some(entry) => finding.blaming(blame.at(&question.auth.map_roles, entry.arn_span)).into(),
        None => finding.blaming(blame).into(),
    }
}
