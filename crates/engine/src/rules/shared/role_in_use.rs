//! What shows that a node role is let in, by whatever way.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::objects::{Node, NodeClaim};
use crate::rules::shared::kubelet_without_node::{self, Whose};
use crate::rules::shared::node_role;
use crate::upstream::karpenter::CLASS_HASH;
use std::sync::Arc;

/// What shows that the node role is let in, by whatever way.
pub(crate) fn is_let_in(case: &Case) -> Option<String> {
    works(case, &running(case, node_role::identity(case.class()?)?))
}

/// What the cluster shows of a role.
pub(crate) struct Running {
    /// A machine has it and its Node is Ready.
    pub any: bool,
    /// Such a NodeClaim, made from its class as that is now, and its Node.
    unchanged: Option<(String, String)>,
    /// A certificate that was made with it.
    csr: Option<String>,
}

pub(crate) fn running(case: &Case, role: &str) -> Arc<Running> {
    static RUNNING: Memo<Running> = Memo::new("what the cluster shows of a role");
    case.cluster.once(&RUNNING, role, || {
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
    let same_role = case.cluster.classes().filter(move |c| node_role::identity(&c.class) == Some(role));
    let claims = same_role.flat_map(|c| {
        let hash = c.class.metadata.annotation(CLASS_HASH);
        let claims = case.cluster.joined_of_class(&c.class.kind, c.class.name());
        claims.map(move |claim| {
            (claim, claim.metadata.annotation(CLASS_HASH).is_none_or(|h| hash.is_none_or(|now| now == h)))
        })
    });
    claims.filter(|(claim, _)| case.cluster.nodes_with_provider_id(&claim.status.provider_id).any(Node::is_ready))
}

/// What shows that kubelets with this role get in, by aws-auth or by an access entry.
pub(crate) fn works(case: &Case, running: &Running) -> Option<String> {
    // A removed mapping also ends running kubelets within minutes, so a Ready Node of the role speaks for now.
    if let Some((claim, node)) = &running.unchanged {
        return Some(format!("Node {node} of NodeClaim {claim} has it and is Ready"));
    }
    let launched = case.claim.and_then(|c| c.true_since("Launched"));
    let kubelet = launched.and_then(|at| kubelet_without_node::of_this_machine(case, at));
    if let Some((name, ..)) = kubelet.filter(|(.., whose)| *whose != Whose::Somebodys) {
        return Some(format!("a kubelet reports as {name}, which only nodes may do"));
    }
    let csr = running.csr.as_ref()?;
    Some(format!("CertificateSigningRequest {csr} was made with it"))
}
