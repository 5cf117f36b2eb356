//! The node role was deleted and recreated under its name, and the access entry still belongs to the old role.

use crate::case::timestamp;
use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::facts::role_in_use;
use crate::rules::prelude::*;

rule! {
    cause: AccessEntryOutlivedRole,
    summary: "The access entry belongs to an earlier role of the same name, which was deleted and recreated",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Events, CertificateSigningRequests, Deployments, AwsObservations],
    versions: "all; seen only if nodewhy may ask EKS and IAM (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    let (role, cluster) = (node_role::name(case)?, case.cluster_name()?);
    let (entry, role_created, at) = match access_entry::entry_state(case, role) {
        EntryState::Outlived { entry, role_created, at } => (entry, role_created, at),
        EntryState::Fits(entry) if node_role::profile(case).is_some_and(|p| p.role_created.is_some()) => {
            let because = format!("the access entry of {} is younger than the role", entry.principal_arn);
            return access_entry::excludes(case, role, because);
        }
        _ => return None,
    };
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return Some(let_in.excludes(role));
    }
    let (arn, type_) = (&entry.principal_arn, &entry.type_);
    let created = entry.created.map(|at| timestamp(at).to_string()).unwrap_or_default();
    let role_created = timestamp(role_created);
    Finding::new(
        Confidence::Certain,
        format!(
            "The role {role} was created at {role_created}, after its access entry ({created}). The entry belongs to \
             an earlier role of this name, so the API server rejects kubelets with this role."
        ),
        Evidence::new(
            format!("eks:DescribeAccessEntry {cluster} {arn}"),
            "createdAt",
            created,
            "EKS keeps the role's id in the entry, and a recreated role has another id",
        )
        .told_by_aws(at),
    )
    .with(
        Evidence::new(
            format!("iam:GetInstanceProfile {role}"),
            "InstanceProfile.Roles[0].CreateDate",
            role_created.to_string(),
            "the role is younger than the entry",
        )
        .told_by_aws(None),
    )
    .blaming(Blame::object("", "EKSAccessEntry", role))
    .fix("Delete the access entry and recreate it, so that it belongs to the current role.")
    .change("Delete the entry", format!("aws eks delete-access-entry --cluster-name {cluster} --principal-arn {arn}"))
    .change(
        "Recreate it for the current role",
        format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {type_}"),
    )
    .into()
}
