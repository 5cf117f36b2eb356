//! The cluster authorizes nodes with access entries only, and the node role has none.
//!
//! Without an answer of EKS, only a class of EKS Auto Mode shows it: its role is the only difference from a class whose
//! nodes join.

use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::{auto_mode_entry, commands};
use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::facts::role_in_use;
use crate::objects::NodeClass;
use crate::rules::prelude::*;
use std::collections::BTreeSet;

rule! {
    cause: NodeRoleHasNoAccessEntry,
    summary: "The node role has no access entry, and aws-auth does not replace it",
    stages: [Join],
    reads: [
        Nodes, NodeClaims, NodeClasses, AwsAuth, Events, CertificateSigningRequests, Deployments, AwsObservations,
    ],
    versions: "all; Certain only if nodewhy may ask EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let role = node_role::name(case)?;
    let Some(cluster) = case.cluster_name() else { return by_contrast(case, role) };
    let (at, mode) = match access_entry::entry_state(case, role) {
        EntryState::Missing { at, mode } => (at, mode),
        EntryState::WrongType { entry, .. } | EntryState::Outlived { entry, .. } | EntryState::Fits(entry) => {
            return access_entry::excludes(case, role, format!("{} has an access entry", entry.principal_arn));
        }
        EntryState::NotRead => {
            let because = format!("the authentication mode of {cluster} is CONFIG_MAP: it reads no access entries");
            return access_entry::mode_excludes(case, because);
        }
        EntryState::Unseen => return by_contrast(case, role),
    };
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return Some(let_in.excludes(role));
    }
    let reads_aws_auth = mode.reads_aws_auth() && case.goes_by(Input::AwsAuth);
    let confidence = match (reads_aws_auth, case.cluster.aws_auth(), case.cluster.missing(Input::AwsAuth)) {
        // Other rules judge what aws-auth says about the role.
        (true, Some(_), _) => return None,
        (true, None, Some(_)) => Confidence::Possible,
        (true, None, None) | (false, ..) => Confidence::Certain,
    };
    let authentication = mode.authentication_mode.as_deref().unwrap_or_default();
    let because =
        if reads_aws_auth { "no aws-auth is known that replaces it" } else { "this cluster does not read aws-auth" };
    let wanted = access_entry::type_for(case);
    let arn = node_role::profile(case)
        .and_then(|p| p.role_arn.clone())
        .unwrap_or_else(|| format!("arn:aws:iam::ACCOUNT:role/{role}"));
    Finding::new(
        confidence,
        format!(
            "The node role {role} has no access entry in the cluster {cluster}, whose authentication mode is \
             {authentication}, so the API server rejects kubelets with this role."
        ),
        Evidence::new(
            format!("eks:ListAccessEntries {cluster}"),
            "accessEntries",
            format!("none for {role}"),
            "an access entry for its role authorizes a kubelet",
        )
        .told_by_aws(at),
    )
    .with(
        Evidence::new(
            format!("eks:DescribeCluster {cluster}"),
            "accessConfig.authenticationMode",
            authentication,
            because,
        )
        .told_by_aws(None),
    )
    .with(node_role::shown(case, role))
    .with_all(case.cluster.missing(Input::AwsAuth).filter(|_| reads_aws_auth).map(|why| {
        Evidence::new("ConfigMap/aws-auth", "data.mapRoles", "not read", format!("it may authorize the role: {why}"))
    }))
    .blaming(Blame::object("", "EKSAccessEntry", role))
    .fix(format!("Create an access entry of type {wanted} for the node role."))
    .change(
        "Create the access entry",
        format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {wanted}"),
    )
    .into()
}

/// Nodes of an Auto Mode class join only with an access entry, and EKS makes it only for the role of its own NodePools.
// Amazon EKS user guide, Create a Node Class for Amazon EKS, "Create node class access entry"
fn by_contrast(case: &Case, role: &str) -> Option<Opinion> {
    let class = case.class().filter(|class| class.is_auto_mode())?;
    if role_in_use::is_let_in(case).is_some() || has_joined(case, node_role::identity(class)) {
        return None;
    }
    let (other, node) = working_twin(case, class)?;
    let theirs = node_role::identity(other).unwrap_or_default();
    let wanted = access_entry::type_for(case);
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "No node with the node role {role} has joined, but nodes of {} {} with the role {theirs} join. EKS \
             probably has no access entry of type {wanted} for {role}, so the API server rejects the kubelet.",
            other.kind,
            other.name()
        ),
        node_role::shown(case, role),
    )
    .with(Evidence::new(
        format!("{}/{}", other.kind, other.name()),
        "spec.role",
        theirs,
        format!(
            "its Node {node} is Ready, and it has the same subnets, security groups, advancedNetworking, \
             certificateBundles and volume key"
        ),
    ))
    .blaming(Blame::object("", "EKSAccessEntry", role))
    .fix(format!("Create an access entry of type {wanted} for the node role. Delete one of another type first."))
    .inspect(
        "Look at the access entry and its type",
        format!(
            "aws eks describe-access-entry --cluster-name {cluster} --principal-arn {}",
            commands::role_arn(role, None)
        ),
    );
    ask_the_instance(case, auto_mode_entry::authorize(case, finding, role)).into()
}

/// Whether a node of any class with this role has joined.
fn has_joined(case: &Case, role: Option<&str>) -> bool {
    let cluster = case.cluster;
    let mut of_role = cluster.classes().filter(|facts| node_role::identity(&facts.class) == role);
    of_role.any(|facts| cluster.joined_of_class(&facts.class.kind, facts.class.name()).next().is_some())
}

/// A class with another role whose nodes join, and a Ready Node of it. All else is equal that may keep a node away, and
/// none of its machines waits.
fn working_twin<'w>(case: &Case<'w>, class: &NodeClass) -> Option<(&'w NodeClass, String)> {
    let cluster = case.cluster;
    let others = cluster.classes().map(|facts| &facts.class).filter(|other| differs_in_role_only(class, other));
    let mut working = others.filter_map(|other| {
        let waiting = cluster.class_members(&other.kind, other.name())?.waiting();
        Some((other, ready_node(case, other).filter(|_| waiting == 0)?))
    });
    working.next()
}

fn differs_in_role_only(class: &NodeClass, other: &NodeClass) -> bool {
    let has_subnet = |id: &str| other.status.subnets.iter().any(|subnet| subnet.id == id);
    let (own, theirs) = (groups(class), groups(other));
    let same_network = !class.status.subnets.is_empty()
        && class.status.subnets.iter().all(|subnet| has_subnet(&subnet.id))
        && !own.is_empty()
        && own == theirs
        && class.spec.advanced_networking == other.spec.advanced_networking;
    let same_machine =
        class.spec.certificate_bundles == other.spec.certificate_bundles && class.storage_key() == other.storage_key();
    let other_role = node_role::identity(other).is_some_and(|role| Some(role) != node_role::identity(class));
    other.is_auto_mode() && other_role && same_network && same_machine
}

fn groups(class: &NodeClass) -> BTreeSet<&str> {
    class.status.security_groups.iter().map(|group| group.id.as_str()).collect()
}

fn ready_node(case: &Case, class: &NodeClass) -> Option<String> {
    static READY: Memo<Option<String>> = Memo::new("a Ready Node of the class");
    let cluster = case.cluster;
    let name = cluster.once(&READY, &format!("{}/{}", class.kind, class.name()), || {
        cluster.joined_of_class(&class.kind, class.name()).find_map(|claim| {
            let mut nodes = cluster.nodes_with_provider_id(&claim.status.provider_id);
            nodes.find(|node| node.is_ready()).map(|node| node.name().to_owned())
        })
    });
    (*name).clone()
}
