//! What separates the machines that fail from those of the same class that joined.
//!
//! One dimension that splits them is evidence for whoever looks for the cause. It is not a cause: it never decides a verdict.

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::finding::saw;
use crate::foreign::NodeClaim;

/// Name and reader of each dimension.
type Dimension = (&'static str, &'static str, fn(&NodeClaim) -> Option<&str>);

const DIMENSIONS: [Dimension; 4] = [
    ("image", "status.imageID", |c| Some(c.status.image_id.as_str()).filter(|id| !id.is_empty())),
    ("zone", "metadata.labels['topology.kubernetes.io/zone']", |c| c.metadata.label("topology.kubernetes.io/zone")),
    ("instance type", "metadata.labels['node.kubernetes.io/instance-type']", |c| c.metadata.label("node.kubernetes.io/instance-type")),
    ("architecture", "metadata.labels['kubernetes.io/arch']", |c| c.metadata.label("kubernetes.io/arch")),
];

/// The dimensions whose value this machine shares with no machine that joined.
#[must_use]
pub fn evidence(case: &Case) -> Vec<Evidence> {
    let Some(claim) = case.claim.filter(|_| matches!(case.stage(), Stage::Join | Stage::Register)) else { return Vec::new() };
    DIMENSIONS.iter().filter_map(|dimension| split(case, claim, dimension)).collect()
}

fn split(case: &Case, claim: &NodeClaim, (what, field, value): &Dimension) -> Option<Evidence> {
    let own = value(claim)?;
    let (mut own_failed, mut others_joined, mut others_failed) = (1, 0, 0);
    let mut elsewhere = None;
    for sibling in case.siblings().filter(|s| s.is_true("Launched")) {
        match (value(sibling)? == own, sibling.is_true("Registered")) {
            (true, true) => return None,
            (true, false) => own_failed += 1,
            (false, true) => {
                others_joined += 1;
                elsewhere = value(sibling);
            }
            (false, false) => others_failed += 1,
        }
    }
    // One machine is no pattern.
    if own_failed < 2 || others_joined < 2 || others_failed > 0 {
        return None;
    }
    let observed =
        format!("{what} {own}: 0 of {own_failed} joined; other values, such as {}: {others_joined} of {others_joined}", elsewhere?);
    Some(saw(case.subject(), *field, observed, format!("the {what} separates the machines that fail from those that joined")))
}
