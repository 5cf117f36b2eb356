//! What the aws-auth rules ask first: which role the machine has, and whether that role is known to work.

use crate::api::{Confidence, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::cluster_state::AwsAuthFacts;
use crate::objects::{InstanceProfile, Node, NodeClaim, NodeClass};
use crate::rules::access::node_name_refused::{self, Whose};
use crate::rules::shared::access_entry::{self, Entrance};
use crate::upstream::karpenter::CLASS_HASH;
use readers::aws_auth::{BOOTSTRAPPERS_GROUP, NODES_GROUP, Verdict};
use std::sync::Arc;

/// The machine's node role, and aws-auth as it stands.
pub(crate) struct Question<'w> {
    /// The role's name; the instance profile's where the class names only that.
    pub role: &'w str,
    /// The role's name is IAM's secret: people often call role and profile alike, but need not.
    pub profile_only: bool,
    pub auth: &'w AwsAuthFacts,
    /// An access entry may let the role in: nodes here come by access entries, or a machine made before the class was last changed
    /// runs, with this role or with an earlier one.
    pub may_have_entry: bool,
    /// EKS says that no access entry lets the role in.
    pub has_no_entry: bool,
}

impl Question<'_> {
    /// How sure a flaw in aws-auth can be of being the cause.
    pub(crate) fn confidence(&self) -> Confidence {
        if self.may_have_entry || self.profile_only { Confidence::Likely } else { Confidence::Certain }
    }
}

/// The node role, where aws-auth makes a node of whoever has it: then no flaw of aws-auth is the cause, whatever else lets the role in.
fn mapped<'w>(case: &Case<'w>) -> Option<&'w str> {
    struct Mapped(bool);
    let (role, auth) = (name(case)?, case.cluster.aws_auth()?);
    let mapped = case.cluster.once(role, || Mapped(matches!(auth.read.judge(role), Verdict::Mapped(_))));
    mapped.0.then_some(role)
}

/// `Err` is the rule's answer where the question does not arise.
pub(crate) fn ask<'w>(case: &Case<'w>) -> Result<Question<'w>, Opinion> {
    if case.stage() != Stage::Join {
        return Err(Opinion::Silent);
    }
    if let Some(role) = mapped(case) {
        return Err(Opinion::ruled_out(format!("aws-auth maps {role} to a node's username and to {NODES_GROUP}")));
    }
    let (Some(class), Some(auth)) = (case.class(), case.cluster.aws_auth()) else { return Err(Opinion::Silent) };
    let Some(role) = identity(class) else { return Err(Opinion::Silent) };
    let running = running(case, role);
    if let Some(proof) = works(case, &running) {
        return Err(Opinion::ruled_out(format!("the node role {role} is let in: {proof}")));
    }
    let ran_before = running.any;
    let named = name(case);
    let profile_only = named.is_none();
    let role = named.unwrap_or_else(|| role.rsplit('/').next().unwrap_or(role));
    let has_no_entry = match access_entry::of(case, role) {
        Entrance::Fits(entry) => {
            return Err(Opinion::ruled_out(format!("the access entry of {} is of type {}", entry.principal_arn, entry.type_)));
        }
        Entrance::Missing { mode, .. } if !mode.reads_aws_auth() => {
            return Err(Opinion::ruled_out("the cluster's authentication mode is API: aws-auth lets nobody in"));
        }
        // An entry beats aws-auth, and this one has its own rule.
        Entrance::WrongType { .. } | Entrance::Outlived { .. } => return Err(Opinion::Silent),
        Entrance::Missing { .. } | Entrance::NotRead => true,
        Entrance::Unseen => false,
    };
    let may_have_entry = !has_no_entry && (ran_before || by_entries(case));
    Ok(Question { role, profile_only, auth, may_have_entry, has_no_entry })
}

/// The name of the role that the machines have: as the class names it, else as IAM says of the class's profile.
pub(crate) fn name<'w>(case: &Case<'w>) -> Option<&'w str> {
    let of_profile = || profile(case).and_then(|profile| profile.role_arn.as_deref());
    let role = case.class()?.spec.role.as_deref().or_else(of_profile)?;
    role.rsplit('/').next()
}

/// The instance profile of the machines, as IAM has it.
pub(crate) fn profile<'w>(case: &Case<'w>) -> Option<&'w InstanceProfile> {
    let name = case.class()?.instance_profile()?;
    case.cluster.aws().instance_profile(name).known().map(|(profile, _)| profile)
}

/// What shows that the node role is let in, by whatever way.
pub(crate) fn is_let_in(case: &Case) -> Option<String> {
    works(case, &running(case, identity(case.class()?)?))
}

/// What the class says of who its machines are.
fn identity(class: &NodeClass) -> Option<&str> {
    class.spec.role.as_deref().or(class.spec.instance_profile.as_deref())
}

/// Nodes that came by an access entry have no bootstrappers group.
pub(crate) fn by_entries(case: &Case) -> bool {
    struct ByEntries(bool);
    let by_entries = case.cluster.once("", || {
        let mut of_nodes = case.cluster.csrs().filter(|c| c.spec.username.starts_with("system:node:"));
        ByEntries(of_nodes.any(|c| !c.spec.groups.iter().any(|g| g == BOOTSTRAPPERS_GROUP)))
    });
    by_entries.0
}

/// What the cluster shows of a role.
struct Running {
    /// A machine has it and its Node is Ready.
    any: bool,
    /// Such a NodeClaim, made from its class as that is now, and its Node.
    unchanged: Option<(String, String)>,
    /// A certificate that was made with it.
    csr: Option<String>,
}

fn running(case: &Case, role: &str) -> Arc<Running> {
    case.cluster.once(role, || {
        let unchanged = ready_claims(case, role).find(|(_, unchanged)| *unchanged);
        let csr = || case.cluster.csrs().find(|c| c.role_name() == Some(role) && c.is_approved());
        Running {
            any: unchanged.is_some() || ready_claims(case, role).next().is_some(),
            unchanged: unchanged.map(|(claim, _)| (claim.name().to_owned(), claim.status.node_name.to_string())),
            csr: csr().map(|csr| csr.metadata.name.to_string()),
        }
    })
}

/// The machines of the role's classes whose Node is Ready, with whether the class is as it was when they were made.
fn ready_claims<'w>(case: &Case<'w>, role: &str) -> impl Iterator<Item = (&'w NodeClaim, bool)> {
    let same_role = case.cluster.classes().filter(move |c| identity(&c.class) == Some(role));
    let claims = same_role.flat_map(|c| {
        let hash = c.class.metadata.annotation(CLASS_HASH);
        let claims = case.cluster.joined_of_class(&c.class.kind, c.class.name());
        claims.map(move |claim| (claim, claim.metadata.annotation(CLASS_HASH).is_none_or(|h| hash.is_none_or(|now| now == h))))
    });
    claims.filter(|(claim, _)| case.cluster.nodes_with_provider_id(&claim.status.provider_id).any(Node::is_ready))
}

/// What shows that kubelets with this role get in, by aws-auth or by an access entry.
fn works(case: &Case, running: &Running) -> Option<String> {
    // A removed mapping also ends running kubelets within minutes, so a Ready Node of the role speaks for now.
    if let Some((claim, node)) = &running.unchanged {
        return Some(format!("Node {node} of NodeClaim {claim} has it and is Ready"));
    }
    let launched = case.claim.and_then(|c| c.true_since("Launched"));
    let kubelet = launched.and_then(|at| node_name_refused::of_this_machine(case, at));
    if let Some((name, ..)) = kubelet.filter(|(.., whose)| *whose != Whose::Somebodys) {
        return Some(format!("a kubelet reports as {name}, which only nodes may do"));
    }
    let csr = running.csr.as_ref()?;
    Some(format!("CertificateSigningRequest {csr} was made with it"))
}
