//! The objects that show that a node role is authorized, whether by aws-auth or by an access entry.

use crate::case::Case;
use crate::case::finding::Opinion;
use crate::case::witness::Sighting;
use crate::cluster_state::memo::Memo;
use crate::facts::kubelet_without_node::{self, Attribution};
use crate::facts::node_role;
use crate::objects::{Node, NodeClaim};
use crate::upstream::text_hash::TextHash;
use chrono::{DateTime, Utc};
use std::sync::Arc;

/// The proof that the node role is authorized, whether by aws-auth or by an access entry.
pub(crate) fn is_let_in(case: &Case) -> Option<LetIn> {
    works(case, &running(case, node_role::identity(case.class()?)?))
}

/// A proof, and what was seen.
#[derive(Clone)]
pub(crate) struct LetIn {
    seen: Sighting,
    proof: String,
}

impl LetIn {
    fn new(seen: impl Into<Sighting>, proof: String) -> Self {
        Self { seen: seen.into(), proof }
    }

    pub(crate) fn text(&self) -> &str {
        &self.proof
    }

    /// Rules out the causes that would reject a role.
    pub(crate) fn excludes(self, role: &str) -> Opinion {
        Opinion::ruled_out(self.seen, format!("the node role {role} is authorized: {}", self.proof))
    }
}

/// The objects that show a role's state.
pub(crate) struct Running {
    /// A machine has it and its Node is Ready.
    pub any: bool,
    /// Such a machine, made from its class as that is now.
    unchanged: Option<LetIn>,
    /// The certificates that were made with it, in order of time.
    csrs: Vec<(DateTime<Utc>, LetIn)>,
}

pub(crate) fn running(case: &Case, role: &str) -> Arc<Running> {
    static RUNNING: Memo<Running> = Memo::new("the objects that show a role's state");
    case.cluster.once(&RUNNING, role, || {
        let unchanged = ready_claims(case, role).find(|(.., unchanged)| *unchanged);
        let approved = case.cluster.csrs().filter(|c| c.role_name() == Some(role) && c.is_approved());
        let mut csrs: Vec<_> = approved
            .filter_map(|csr| {
                let proof = format!("CertificateSigningRequest {} was made with it", csr.metadata.name);
                Some((csr.metadata.creation_timestamp?, LetIn::new(csr, proof)))
            })
            .collect();
        csrs.sort_by_key(|(made, _)| *made);
        Running {
            any: unchanged.is_some() || ready_claims(case, role).next().is_some(),
            unchanged: unchanged.map(|(claim, node, _)| {
                LetIn::new(node, format!("Node {} of NodeClaim {} has it and is Ready", node.name(), claim.name()))
            }),
            csrs,
        }
    })
}

/// The machines of the role's classes whose Node is Ready, with whether the class is as it was when they were made.
fn ready_claims<'w>(case: &Case<'w>, role: &str) -> impl Iterator<Item = (&'w NodeClaim, &'w Node, bool)> {
    let same_role = case.cluster.classes().filter(move |c| node_role::identity(&c.class) == Some(role));
    let claims = same_role.flat_map(|c| {
        let hash = TextHash::of_class(&c.class.metadata);
        let claims = case.cluster.joined_of_class(&c.class.kind, c.class.name());
        claims.map(move |claim| {
            (claim, TextHash::of_class(&claim.metadata).is_none_or(|own| hash.is_none_or(|now| now == own)))
        })
    });
    claims.filter_map(|(claim, unchanged)| {
        let node = case.cluster.nodes_with_provider_id(&claim.status.provider_id).find(|node| node.is_ready())?;
        Some((claim, node, unchanged))
    })
}

/// The proof that kubelets with this role are authorized, by aws-auth or by an access entry.
pub(crate) fn works(case: &Case, running: &Running) -> Option<LetIn> {
    // A removed mapping also ends running kubelets within minutes, so a Ready Node of the role speaks for now.
    if let Some(unchanged) = &running.unchanged {
        return Some(unchanged.clone());
    }
    let launched = case.claim.and_then(|c| c.true_since("Launched"))?;
    let kubelet = kubelet_without_node::of_this_machine(case, launched);
    if let Some((name, event, _)) = kubelet.filter(|(.., whose)| *whose != Attribution::Unclear) {
        return Some(LetIn::new(event, format!("a kubelet reports as {name}, which only nodes may do")));
    }
    // One from before the launch does not tell whether the role has lost its entry since.
    let since = running.csrs.partition_point(|(made, _)| *made < launched);
    running.csrs.get(since).map(|(_, let_in)| let_in.clone())
}
