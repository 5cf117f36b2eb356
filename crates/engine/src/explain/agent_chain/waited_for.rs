//! A pod whose init container waits for another agent's pod on the Node, and that one fails.

use super::agent::Agent;
use crate::case::Case;
use crate::objects::{ContainerStatus, Pod};

/// How the name of such a container begins; the rest is the end of the other DaemonSet's name. Cilium's agent waits for
/// DaemonSet cilium-node-init.
/// Source: cilium v1.11.3 install/kubernetes/cilium/templates/cilium-agent/daemonset.yaml (`wait-for-node-init`).
const WAITS_FOR: &str = "wait-for-";

/// The container that waits, and the pod that it waits for.
pub(super) fn another<'c>(case: &Case<'c>, agent: &Agent<'c>) -> Option<(&'c str, &'c Pod)> {
    let runs = |status: &&ContainerStatus| {
        !status.ready && status.state.waiting.is_none() && status.state.terminated.is_none()
    };
    let waits = agent.pod.status.init_container_statuses.iter().find(runs)?;
    let awaited = waits.name.strip_prefix(WAITS_FOR).filter(|rest| !rest.is_empty())?;
    let is_awaited = |pod: &&Pod| {
        let set = pod.daemon_set().filter(|set| *set != agent.set);
        set.is_some_and(|set| set.ends_with(awaited)) && pod.trouble().is_some()
    };
    Some((waits.name.as_str(), case.pods().find(is_awaited)?))
}
