//! Whether pods on the Node are refused because it has no address for them.

use crate::api::Stage;
use crate::case::Case;
use crate::case::stage::Symptom;
use crate::objects::{Event, Node};
use crate::upstream::node_events::{Sandbox, refused_sandbox};
use crate::upstream::vpc_cni::has_branch_interface;

/// The newest event in which a kubelet reports that a pod on the Node got no address. One that waits for an interface
/// of its own needs none of the Node's.
pub(crate) fn refusal<'c>(case: &Case<'c>, node: &Node) -> Option<&'c Event> {
    let has_own = |event: &Event| case.pods().any(|pod| event.names(&pod.metadata) && has_branch_interface(pod));
    let events = case.cluster.pod_events_on(node.name());
    let of_node = events.filter(|e| refused_sandbox(e) == Some(Sandbox::Address) && !has_own(e));
    of_node.max_by_key(|e| e.last_seen())
}

/// Whether the Node waits because pods get no addresses.
pub(crate) fn is_refusing(case: &Case, node: &Node) -> bool {
    case.stage() == Stage::Ready && case.wait.symptom == Symptom::PodsRefused && refusal(case, node).is_some()
}
