//! Whether pods on the Node are refused because it has no address for them.

use crate::api::Stage;
use crate::case::Case;
use crate::case::stage::Symptom;
use crate::objects::{Event, Node};
use crate::upstream::node_events::{Sandbox, refused_sandbox};

/// The newest event in which a kubelet reports that a pod on the Node got no address.
pub(crate) fn refusal<'c>(case: &Case<'c>, node: &Node) -> Option<&'c Event> {
    let events = case.cluster.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Address));
    events.max_by_key(|e| e.last_seen())
}

/// Whether the Node waits because pods get no addresses.
pub(crate) fn is_refusing(case: &Case, node: &Node) -> bool {
    case.stage() == Stage::Ready && case.wait.symptom == Symptom::PodsRefused && refusal(case, node).is_some()
}
