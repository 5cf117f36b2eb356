//! The node role has an access entry of a type that kubelets cannot come in by.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::access_entry::{self, Entrance};
use crate::rules::shared::node_role;
use crate::rules::shared::role_in_use;

pub static RULE: Rule = Rule {
    cause: "AccessEntryWrongType",
    summary: "The access entry of the node role is of type STANDARD or another that kubelets cannot come in by",
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
    versions: "all; seen only where nodewhy may ask EKS (--aws)",
    page: include_str!("../../../pages/AccessEntryWrongType.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(role), Some(cluster)) = (node_role::name(case), case.cluster_name()) else { return Opinion::Silent };
    let (entry, at) = match access_entry::of(case, role) {
        Entrance::WrongType { entry, at } => (entry, at),
        Entrance::Fits(entry) => {
            let because = format!("the access entry of {role} is of type {}", entry.type_);
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
        format!("The access entry of the node role {role} in the cluster {cluster} is of type {type_}, not {wanted}, so the kubelets of its machines are turned away."),
        Evidence::new(format!("eks:DescribeAccessEntry {cluster} {arn}"), "type", type_, "an entry of this type makes no kubelet a node, and it goes before aws-auth").told_by_aws(at),
    )
    .with(node_role::shown(case, role))
    .blaming(Blame::object("", "EKSAccessEntry", role))
    .fix(format!("Delete the entry and make it anew with the type {wanted}: the type of an entry cannot be changed."))
    .step(Risk::Mutating, "Delete the entry; no Node has come in by it", Some(format!("aws eks delete-access-entry --cluster-name {cluster} --principal-arn {arn}")))
    .step(Risk::Mutating, "Make it anew", Some(format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {wanted}")))
    .into()
}
