//! The node role has an access entry of a type that does not authorize nodes.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::facts::role_in_use;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "AccessEntryWrongType",
    summary: "The access entry of the node role has type STANDARD or another type that does not authorize nodes",
    stages: &[Stage::Join],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodeClasses,
        Input::Events,
        Input::CertificateSigningRequests,
        Input::Deployments,
        Input::AwsObservations,
    ],
    lint: false,
    versions: "all; seen only if nodewhy may ask EKS (--aws)",
    page: include_str!("../../../pages/AccessEntryWrongType.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(role), Some(cluster)) = (node_role::name(case), case.cluster_name()) else { return Opinion::Silent };
    let (entry, at) = match access_entry::entry_state(case, role) {
        EntryState::WrongType { entry, at } => (entry, at),
        EntryState::Fits(entry) => {
            let because = format!("the access entry of {role} has type {}", entry.type_);
            return access_entry::excludes(case, role, because);
        }
        _ => return Opinion::Silent,
    };
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return let_in.excludes(role);
    }
    let wanted = access_entry::type_for(case);
    let (arn, type_) = (&entry.principal_arn, &entry.type_);
    Finding::new(
        Confidence::Certain,
        format!(
            "The access entry of the node role {role} in the cluster {cluster} has type {type_}, not {wanted}, so the \
             API server rejects kubelets with this role."
        ),
        Evidence::new(
            format!("eks:DescribeAccessEntry {cluster} {arn}"),
            "type",
            type_,
            "an entry of this type does not authorize nodes, and it takes precedence over aws-auth",
        )
        .told_by_aws(at),
    )
    .with(node_role::shown(case, role))
    .blaming(Blame::object("", "EKSAccessEntry", role))
    .fix(format!("Delete the access entry and recreate it with type {wanted}. EKS cannot change the type of an entry."))
    .step(
        Risk::Mutating,
        "Delete the entry (no Node has joined with it)",
        Some(format!("aws eks delete-access-entry --cluster-name {cluster} --principal-arn {arn}")),
    )
    .step(
        Risk::Mutating,
        "Recreate it with type {wanted}",
        Some(format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {wanted}")),
    )
    .into()
}
