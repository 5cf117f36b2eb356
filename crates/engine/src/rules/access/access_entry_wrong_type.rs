//! The node role has an access entry of a type that does not authorize nodes.

use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::facts::role_in_use;
use crate::rules::prelude::*;

rule! {
    cause: AccessEntryWrongType,
    summary: "The access entry of the node role has type STANDARD or another type that does not authorize nodes",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Events, CertificateSigningRequests, Deployments, AwsObservations],
    versions: "all; seen only if nodewhy may ask EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let (role, cluster) = (node_role::name(case)?, case.cluster_name()?);
    let (entry, at) = match access_entry::entry_state(case, role) {
        EntryState::WrongType { entry, at } => (entry, at),
        EntryState::Fits(entry) => {
            let because = format!("the access entry of {role} has type {}", entry.type_);
            return access_entry::excludes(case, role, because);
        }
        _ => return None,
    };
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return Some(let_in.excludes(role));
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
    .change(
        "Delete the entry (no Node has joined with it)",
        format!("aws eks delete-access-entry --cluster-name {cluster} --principal-arn {arn}"),
    )
    .change(
        "Recreate it with type {wanted}",
        format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {wanted}"),
    )
    .into()
}
