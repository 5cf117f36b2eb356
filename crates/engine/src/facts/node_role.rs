//! The role of the machines of a node class.

use crate::api::Evidence;
use crate::case::Case;
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{CertificateSigningRequest, InstanceProfile, Node, NodeClass};
use readers::aws_auth::BOOTSTRAPPERS_GROUP;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The name of the role that the machine has: that in its own instance profile, where EC2 and IAM tell, else that of
/// its class.
pub(crate) fn name<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.role_name()
}

/// The name of the machine's instance profile: as EC2 says, else as its class does.
pub(crate) fn profile_name<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.own_profile().or_else(|| case.class()?.instance_profile())
}

/// The object that shows the machine's role.
pub(crate) fn shown(case: &Case, role: &str) -> Evidence {
    let says = |class: &&NodeClass| class.spec.role.as_deref().is_some_and(|own| own.rsplit('/').next() == Some(role));
    let because = "the instances have this role";
    match (case.class().filter(says), profile_name(case)) {
        (None, Some(profile)) => {
            Evidence::new(format!("iam:GetInstanceProfile {profile}"), "InstanceProfile.Roles[0]", role, because)
                .told_by_aws(None)
        }
        _ => Evidence::new(case.class_object().unwrap_or_default(), "spec.role", role, because),
    }
}

/// The role of a Node: that of its class, else the one that it asked for its certificate with.
pub(crate) fn of_node(cluster: &ClusterState, node: &Node) -> Option<String> {
    let of_class = || {
        let claim = cluster.claim_of_node(node)?;
        let class = cluster.class_at_launch(&claim.spec.node_class_ref, &claim.metadata)?.known()?;
        cluster.aws().role_of(&class.class).map(str::to_owned)
    };
    of_class().or_else(|| by_certificate(cluster).get(node.instance_id()?).cloned())
}

/// The machine's role from every source: its class, otherwise certificates, its own or those of its siblings.
pub(crate) fn seen(case: &Case) -> Option<String> {
    static OF_SIBLINGS: Memo<Option<String>> =
        Memo::new("the role with which a class's machines requested certificates");
    if let Some(name) = name(case) {
        return Some(name.to_owned());
    }
    let roles = by_certificate(case.cluster);
    if let Some(role) = case.instance_id().and_then(|id| roles.get(id)) {
        return Some(role.clone());
    }
    let class = case.class()?;
    let of_class = || {
        let mut joined = case.cluster.joined_of_class(&class.kind, class.name());
        joined.find_map(|claim| roles.get(claim.instance_id()?).cloned())
    };
    (*case.cluster.once(&OF_SIBLINGS, &format!("{}/{}", class.kind, class.name()), of_class)).clone()
}

/// By instance, the role that it asked for a certificate with.
fn by_certificate(cluster: &ClusterState) -> Arc<BTreeMap<String, String>> {
    static ROLES: Memo<BTreeMap<String, String>> = Memo::new("the roles that requested certificates");
    cluster.once(&ROLES, "", || {
        let role = |c: &CertificateSigningRequest| Some((c.instance_id()?.to_owned(), c.role_name()?.to_owned()));
        cluster.csrs().filter_map(role).collect()
    })
}

/// The certificate of a Node that came with this role by an access entry: then it has no bootstrappers group.
pub(crate) fn came_by_entry<'w>(case: &Case<'w>, role: &str) -> Option<&'w CertificateSigningRequest> {
    certificates(case.cluster, role).find(|c| !came_by_aws_auth(c))
}

/// A certificate that shows that aws-auth once authorized the role.
pub(crate) fn evidence(case: &Case, role: &str) -> Option<Evidence> {
    let csr = certificates(case.cluster, role).find(|c| came_by_aws_auth(c))?;
    let because = format!("aws-auth mapped {role} as a node then: access entries have no such group");
    let object = format!("CertificateSigningRequest/{}", csr.metadata.name);
    Some(Evidence::new(object, "spec.groups", csr.spec.groups.join(", "), because))
}

pub(crate) fn came_by_aws_auth(csr: &CertificateSigningRequest) -> bool {
    csr.spec.username.starts_with("system:node:") && csr.spec.groups.iter().any(|g| g == BOOTSTRAPPERS_GROUP)
}

fn certificates<'w>(cluster: &'w ClusterState, role: &str) -> impl Iterator<Item = &'w CertificateSigningRequest> {
    cluster.csrs().filter(move |c| c.spec.username.starts_with("system:node:") && c.role_name() == Some(role))
}

/// The instance profile of the machines, as IAM has it.
pub(crate) fn profile<'w>(case: &Case<'w>) -> Option<&'w InstanceProfile> {
    case.cluster.aws().instance_profile(profile_name(case)?).known().map(|(profile, _)| profile)
}

/// The field of the class that sets the role of its machines.
pub(crate) fn identity(class: &NodeClass) -> Option<&str> {
    class.spec.role.as_deref().or(class.spec.instance_profile.as_deref())
}
