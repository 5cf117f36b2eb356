//! An agent's pod for which its Node has no room: what it requests, and what the other pods leave.

use super::agent::Agent;
use crate::case::Case;
use crate::case::pod_requests::takes;
use crate::objects::{Node, Pod, quantity};

/// The clause and the fix. `None` if the scheduler names no resource, or if the numbers do not show the shortage.
pub(super) fn no_room(case: &Case, node: &Node, agent: &Agent, said: &str) -> Option<(String, String)> {
    let mut named: Vec<&str> = said.split("Insufficient ").skip(1).filter_map(resource).collect();
    named.dedup();
    let short: Vec<String> =
        named.into_iter().filter_map(|resource| shortage(case, node, agent.pod, resource)).collect();
    if short.is_empty() {
        return None;
    }
    let (name, set, short) = (agent.name, agent.set, short.join(", "));
    Some(match agent.pod.spec.priority_class_name.as_str() {
        // Then its priority is 0: kubernetes v1.36.3 plugin/pkg/admission/priority/admission.go.
        "" => (
            format!("pod {name} has no room on the Node, because it {short}, and it has no priority class"),
            format!(
                "Give DaemonSet {set} the priority class system-node-critical: its pod then evicts pods of lower \
                 priority there. Or lower its requests, or allow larger nodes in the NodePool."
            ),
        ),
        // The highest that there are.
        class @ ("system-node-critical" | "system-cluster-critical") => (
            format!("pod {name} (priority class {class}) has no room on the Node, because it {short}"),
            format!(
                "Lower the requests of DaemonSet {set}, or of the pods there whose priority is as high. Or allow \
                 larger nodes in the NodePool."
            ),
        ),
        class => (
            format!("pod {name} (priority class {class}) has no room on the Node, because it {short}"),
            format!(
                "Lower the requests of DaemonSet {set}, or allow larger nodes in the NodePool. A priority class above \
                 that of the pods there, such as system-node-critical, evicts them."
            ),
        ),
    })
}

/// `cpu` of `cpu, 3 node(s) didn't match …`.
fn resource(rest: &str) -> Option<&str> {
    rest.split([',', ' ']).next().map(|word| word.trim_end_matches('.'))
}

/// `requests 270m of cpu, but 210m are free`
fn shortage(case: &Case, node: &Node, pod: &Pod, resource: &str) -> Option<String> {
    let room = quantity::parse(node.status.allocatable.get(resource)?)?;
    let bound = case.cluster.pods_on(node.name()).filter(|other| other.spec.node_name == node.name());
    let (least, most) = bound
        .filter(|other| !other.has_ended())
        .map(|other| takes(other, resource))
        .fold((0.0, 0.0), |(least, most), (l, m)| (least + l, most + m));
    let (needs, free) = (takes(pod, resource).0, (room - least).max(0.0));
    // Init containers may keep running.
    let limit = if most > least { "at most " } else { "" };
    let amount = |number: f64| amount(resource, number);
    (needs > free).then(|| format!("requests {} of {resource}, but {limit}{} are free", amount(needs), amount(free)))
}

fn amount(resource: &str, number: f64) -> String {
    match resource {
        "cpu" => format!("{:.0}m", number * 1000.0),
        _ => quantity::shown(resource, &format!("{number:.0}")),
    }
}
