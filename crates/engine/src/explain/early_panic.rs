//! The kernel panicked before any user data could run: its image or the instance type is to blame.

use crate::api::{Blame, Evidence};
use crate::case::Case;
use crate::explain::logged::Root;
use crate::objects::NodeClaim;

/// The label of the instance type.
const TYPE: &str = "node.kubernetes.io/instance-type";

/// What to do, what to change, and what speaks for it.
pub(crate) struct EarlyPanic {
    pub fix: String,
    pub blame: Option<Blame>,
    pub evidence: Option<Evidence>,
}

/// If a machine of another type joined with the same image, the type is what differs.
pub(crate) fn of(case: &Case, root: &Root) -> Option<EarlyPanic> {
    if !root.fact.before_user_data {
        return None;
    }
    let by_type = case.claim.and_then(|claim| {
        let (own, pool) = (claim.metadata.label(TYPE)?, claim.node_pool()?);
        Some((own, pool, other_type(case, claim, own)?))
    });
    Some(match by_type {
        Some((own, pool, other)) => {
            let theirs = other.metadata.label(TYPE).unwrap_or_default();
            EarlyPanic {
                fix: format!(
                    "Exclude {own} and its family in the requirements of NodePool {pool} (NotIn): the same image boots \
                     on {theirs}. Or use an image with another kernel. Only new nodes get the change."
                ),
                blame: Some(
                    Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"),
                ),
                evidence: Some(Evidence::new(
                    format!("NodeClaim/{}", other.name()),
                    "status.imageID",
                    other.status.image_id.to_string(),
                    format!("the same image joined on {theirs}"),
                )),
            }
        }
        None => EarlyPanic {
            fix: "Use an image with another kernel. Or exclude the instance type in the NodePool's requirements \
                  (NotIn), if the image boots on other types. Only new nodes get the change."
                .to_owned(),
            blame: case.class_field("spec.amiSelectorTerms"),
            evidence: None,
        },
    })
}

fn other_type<'w>(case: &Case<'w>, claim: &NodeClaim, own: &str) -> Option<&'w NodeClaim> {
    let image = &claim.status.image_id;
    let is_other = |other: &&NodeClaim| {
        !image.is_empty() && other.status.image_id == *image && other.metadata.label(TYPE).is_some_and(|t| t != own)
    };
    case.joined_siblings().find(is_other)
}
