//! The Node is Ready, and no pod starts on it: the network plugin or the container runtime refuses their sandboxes.

use crate::api::{Blame, Link, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::case::stage::{Sandbox, Symptom, refused_sandbox, refuses_container, waits_for_sandbox};
use crate::objects::input::Input;
use crate::objects::{Event, Node, Pod};
use crate::rules::Rule;
use crate::rules::shared::agent_chain::{Obstacle, of_pod};
use crate::rules::shared::network_plugin;

pub static RULE: Rule = Rule {
    cause: "PodSandboxFails",
    summary: "The Node is Ready, and none of its pods starts: their sandboxes or containers are refused by the network plugin or the runtime",
    stages: &[Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Events, Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/PodSandboxFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|node| case.wait.symptom == Symptom::PodsRefused && !node.is_windows()) else {
        return Opinion::Silent;
    };
    let Some((pod, sandbox)) = refused(case, node) else { return Opinion::Silent };
    let obstacle = of_node(case, node, of_pod(case, node, pod), sandbox);
    let summary = format!(
        "Node {} is Ready, and none of the pods that came since {} starts there: {}.",
        node.name(),
        case.since(),
        obstacle.why.trim_end_matches('.')
    );
    let symptom = Link::new(format!("Node/{}", node.name()), "Ready, and none of its new pods starts");
    obstacle.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// A pod that waits for its sandbox: one of a DaemonSet may suffer from more than that.
fn refused<'c>(case: &Case<'c>, node: &Node) -> Option<(&'c Pod, Sandbox)> {
    let of = |pod: &Pod| {
        let own =
            case.cluster.pod_events_on(node.name()).filter(|e| e.names(&pod.metadata) && waits_for_sandbox(pod, e));
        let refusal = |e: &Event| refused_sandbox(e).or_else(|| refuses_container(e).then_some(Sandbox::Runtime));
        own.filter_map(|e| Some((e.last_seen(), refusal(e)?))).max_by_key(|(at, _)| *at)
    };
    let waiting = case.pods().filter_map(|pod| Some((pod, of(pod)?.1)));
    let unspecific = waiting.filter(|(_, sandbox)| matches!(sandbox, Sandbox::Network | Sandbox::Runtime));
    unspecific.min_by_key(|(pod, _)| (pod.daemon_set().is_some(), &pod.metadata.name))
}

/// What every pod meets lies with none of them.
fn of_node(case: &Case, node: &Node, obstacle: Obstacle, sandbox: Sandbox) -> Obstacle {
    let of_pod = obstacle.links.len() == 1 && obstacle.open.is_some();
    if !of_pod {
        return obstacle;
    }
    let plugin = network_plugin::plugin(case, node).filter(|_| sandbox == Sandbox::Network);
    let blame = plugin.map_or_else(
        || Blame::object("v1", "Node", node.name()),
        |set| {
            let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
            Blame::object("apps/v1", "DaemonSet", &set.metadata.name).namespace(namespace)
        },
    );
    let fix = match plugin {
        Some(set) => format!("Read the log of DaemonSet {} on this Node: it refuses every pod.", set.metadata.name),
        None => "Read what containerd says on the machine (journalctl -u containerd), or replace the Node: its runtime starts no pod.".to_owned(),
    };
    Obstacle { blame, ..obstacle }.fix(fix)
}
