//! The cluster authorizes nodes with access entries only, and the node role has none.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::facts::access_entry::{self, EntryState};
use crate::facts::node_role;
use crate::facts::role_in_use;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NodeRoleHasNoAccessEntry",
    summary: "The node role has no access entry, and aws-auth does not replace it",
    stages: &[Stage::Join],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodeClasses,
        Input::AwsAuth,
        Input::Events,
        Input::CertificateSigningRequests,
        Input::Deployments,
        Input::AwsObservations,
    ],
    lint: false,
    versions: "all; seen only if nodewhy may ask EKS (--aws)",
    page: include_str!("../../../pages/NodeRoleHasNoAccessEntry.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(role), Some(cluster)) = (node_role::name(case), case.cluster_name()) else { return Opinion::Silent };
    let (at, mode) = match access_entry::entry_state(case, role) {
        EntryState::Missing { at, mode } => (at, mode),
        EntryState::WrongType { entry, .. } | EntryState::Outlived { entry, .. } | EntryState::Fits(entry) => {
            return access_entry::excludes(case, role, format!("{} has an access entry", entry.principal_arn));
        }
        EntryState::NotRead => {
            let because = format!("the authentication mode of {cluster} is CONFIG_MAP: it reads no access entries");
            return access_entry::mode_excludes(case, because);
        }
        EntryState::Unseen => return Opinion::Silent,
    };
    if let Some(let_in) = role_in_use::is_let_in(case) {
        return let_in.excludes(role);
    }
    let reads_aws_auth = mode.reads_aws_auth() && case.goes_by(Input::AwsAuth);
    let confidence = match (reads_aws_auth, case.cluster.aws_auth(), case.cluster.missing(Input::AwsAuth)) {
        // Other rules judge what aws-auth says about the role.
        (true, Some(_), _) => return Opinion::Silent,
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
    .step(
        Risk::Mutating,
        "Create the access entry",
        Some(format!("aws eks create-access-entry --cluster-name {cluster} --principal-arn {arn} --type {wanted}")),
    )
    .into()
}
