//! The ConfigMap aws-auth by itself: entries for nodes that authorize no node, and maps that the authenticator does not
//! read.

use super::{Level, Mistake};
use crate::api::Blame;
use crate::cluster_state::AwsAuthFacts;
use crate::objects::ConfigMap;
use readers::aws_auth::{MappingDefectKind, NODES_GROUP, NodeFlaw, RoleMapping, UsernameFlaw};
use readers::source_text::Span;

/// Entries of `mapRoles` for nodes that authorize no caller. `is_in_use` says whether nodes with the role of this name
/// join all the same.
pub fn entries(auth: &AwsAuthFacts, is_in_use: &dyn Fn(&str) -> bool) -> Vec<Mistake> {
    let entries = auth.read.roles.iter().filter_map(|entry| Some((entry, entry.node_flaw()?)));
    let unused = entries.filter(|(entry, _)| !is_in_use(role_name(&entry.role_arn)));
    unused.filter_map(|(entry, flaw)| mistake(auth, entry, &flaw)).collect()
}

/// The name in the ARN of a role, or the name itself.
pub fn role_name(role: &str) -> &str {
    let role = role.trim();
    role.rsplit(['/', ':']).next().unwrap_or(role)
}

/// Whether another entry authorizes the nodes of the same role. Then nothing is lost.
fn is_made_up_for(auth: &AwsAuthFacts, entry: &RoleMapping) -> bool {
    auth.read.roles.iter().any(|other| {
        role_name(&other.role_arn) == role_name(&entry.role_arn)
            && other.node_flaw().is_none()
            && other.groups.iter().any(|g| g == NODES_GROUP)
    })
}

/// Whether the entry has a group of the user's own, which a ClusterRoleBinding may permit to register Nodes.
fn has_own_group(entry: &RoleMapping) -> bool {
    entry.groups.iter().any(|group| !group.starts_with("system:"))
}

/// Whether the entry has a field that the authenticator does not know. That finding explains what the entry lacks.
fn has_ignored_field(auth: &AwsAuthFacts, entry: &RoleMapping) -> bool {
    let is_within = |span: Span| entry.span.start <= span.start && span.end <= entry.span.end;
    auth.read.defects.iter().any(|defect| defect.kind == MappingDefectKind::FieldIgnored && is_within(defect.span))
}

fn mistake(auth: &AwsAuthFacts, entry: &RoleMapping, flaw: &NodeFlaw) -> Option<Mistake> {
    let unless = "An access entry for the role would replace it.";
    let (cause, span, message, fix): (_, Span, _, _) = match flaw {
        NodeFlaw::Arn(_) if is_made_up_for(auth, entry) => return None,
        NodeFlaw::Arn(miss) => (
            "AwsAuthArnNeverMatches",
            entry.arn_span,
            format!(
                "The ARN {} in ConfigMap aws-auth {}, so it matches no caller. {unless}",
                entry.role_arn,
                miss.why()?
            ),
            "Write arn:aws:iam::ACCOUNT:role/NAME, without a path, even if the role has one.",
        ),
        NodeFlaw::Username(flaw) => (
            "AwsAuthEntryIncomplete",
            entry.username_span.unwrap_or(entry.span),
            match flaw {
                UsernameFlaw::UnknownTemplate(template) => format!(
                    "An entry of ConfigMap aws-auth has {template} in its username, which is no template of the \
                     authenticator, so kubelets cannot register Nodes. {unless}"
                ),
                _ => format!(
                    "An entry of ConfigMap aws-auth has the group {NODES_GROUP} but no username that begins with \
                     system:node:, so kubelets cannot register Nodes. {unless}"
                ),
            },
            "Write username: system:node:{{EC2PrivateDNSName}}.",
        ),
        NodeFlaw::Groups if has_ignored_field(auth, entry) || has_own_group(entry) => return None,
        NodeFlaw::Groups => (
            "AwsAuthEntryIncomplete",
            entry.groups_span.unwrap_or(entry.span),
            format!(
                "An entry of ConfigMap aws-auth has a node's username but lacks the group {NODES_GROUP}, so kubelets \
                 cannot register Nodes. {unless}"
            ),
            "Give the entry the groups system:bootstrappers and system:nodes.",
        ),
    };
    Some(Mistake {
        level: Level::Warning,
        cause: cause.to_owned(),
        message,
        fix: Some(fix.to_owned()),
        blame: Blame::object("v1", "ConfigMap", "aws-auth")
            .namespace("kube-system")
            .field("data.mapRoles")
            .at(&auth.map_roles, span),
        grave: false,
    })
}

/// The keys of `data`, which are exact, and the keys that people write instead.
// aws-iam-authenticator 81b1dab pkg/mapper/configmap/configmap.go ParseMap
const KEYS: [(&str, [&str; 6]); 3] = [
    ("mapRoles", ["maproles", "MapRoles", "map_roles", "map-roles", "mapRole", "maprole"]),
    ("mapUsers", ["mapusers", "MapUsers", "map_users", "map-users", "mapUser", "mapuser"]),
    ("mapAccounts", ["mapaccounts", "MapAccounts", "map_accounts", "map-accounts", "mapAccount", "mapaccount"]),
];

/// A ConfigMap aws-auth in another namespace, and misspelled keys: the authenticator reads neither.
pub fn unread(map: &ConfigMap, has: &dyn Fn(&str) -> bool) -> Vec<Mistake> {
    let blame = |field: String| Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field(field);
    let mistake = |message: String, fix: String, field: String| Mistake {
        level: Level::Warning,
        cause: "AwsAuthReadByNobody".to_owned(),
        message,
        fix: Some(fix),
        blame: blame(field),
        grave: false,
    };
    let namespace = map.metadata.namespace.as_deref().filter(|namespace| *namespace != "kube-system");
    let elsewhere = namespace.filter(|namespace| !readers::userdata::has_expansion(namespace)).map(|namespace| {
        mistake(
            format!(
                "ConfigMap aws-auth is in the namespace {namespace}, but the authenticator reads only kube-system."
            ),
            "Write namespace: kube-system.".to_owned(),
            "metadata.namespace".to_owned(),
        )
    });
    let misspelt = KEYS.into_iter().flat_map(|(meant, slips)| slips.into_iter().map(move |slip| (meant, slip)));
    let misspelt = misspelt.filter(|(_, slip)| has(&format!("data.{slip}"))).map(|(meant, slip)| {
        mistake(
            format!(
                "ConfigMap aws-auth has the key {slip}, which the authenticator does not read: the key is {meant}."
            ),
            format!("Write {meant}."),
            format!("data.{slip}"),
        )
    });
    elsewhere.into_iter().chain(misspelt).collect()
}
