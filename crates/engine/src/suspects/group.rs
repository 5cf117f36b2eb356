//! Machines that nothing distinguishes have the same suspects, weighed once.

use super::{Weighed, differential, frequency, weighed};
use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::class_members::DIMENSIONS;
use crate::cluster_state::memo::Memo;
use crate::facts::machine_image;
use crate::objects::NodeClaim;
use std::sync::Arc;

/// The suspects for all machines of the case's group. `None` if a machine is compared by its Node, or by what Karpenter
/// reports about it alone.
pub(super) fn of(case: &Case) -> Option<Arc<Vec<Weighed>>> {
    static WEIGHED: Memo<Vec<Weighed>> = Memo::new("the suspects for machines of a group");
    let waits = |claim: &&NodeClaim| case.node.is_none() && !claim.is_true("Registered");
    let claim = case.claim.filter(waits)?;
    if case.stage() != Stage::Join || differential::reporting(case).is_some() {
        return None;
    }
    let is_asked = |candidate: &super::CauseCandidate| candidate.stages.contains(&Stage::Join);
    Some(case.cluster.once(&WEIGHED, &key(case, claim), || weighed(case, is_asked, frequency::reports)))
}

/// Everything about one machine that a candidate may see before a Node exists. An instance's id is only in commands,
/// which each machine has for itself.
fn key(case: &Case, claim: &NodeClaim) -> String {
    const ROOM: usize = 256;
    let class = &claim.spec.node_class_ref;
    let values = DIMENSIONS.iter().map(|dimension| dimension.value(claim));
    let image = machine_image::of(case);
    let let_in = differential::is_let_in(case).then_some("let in");
    let named = [Some(class.kind.as_str()), Some(class.name.as_str()), image, let_in];
    let mut key = String::with_capacity(ROOM);
    key.push_str(&case.texts());
    for value in named.into_iter().chain(values) {
        key.push_str(value.unwrap_or_default());
        key.push('\n');
    }
    key
}
