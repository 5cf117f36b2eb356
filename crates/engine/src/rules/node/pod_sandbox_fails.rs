//! The Node is Ready, but no pod starts on it: the network plugin or the container runtime refuses their sandboxes.

use crate::case::unstarted_pods::waits_for_sandbox;
use crate::explain::agent_chain::of_pod;
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::proxied;
use crate::facts::network_plugin;
use crate::objects::{DaemonSet, Event, Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::node_events::{NO_UNIT_STARTS, Sandbox, refused_sandbox, refuses_container};
use readers::source_text;

rule! {
    cause: PodSandboxFails,
    summary: "The Node is Ready, but no new pod starts: the network plugin or the runtime refuses their sandboxes or \
              containers",
    stages: [Ready],
    reads: [NodeClaims, Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|node| case.wait.symptom == Symptom::PodsRefused && !node.is_windows())?;
    let (pod, sandbox) = refused(case, node)?;
    let explanation = match sandbox {
        Sandbox::Unit => without_units(case, node, pod),
        _ => of_node(case, node, of_pod(case, node, pod), sandbox),
    };
    let summary = format!(
        "Node {} is Ready, but no pod that was assigned to it since {} starts: {}.",
        node.name(),
        case.since(),
        explanation.why.trim_end_matches('.')
    );
    let symptom = Link::new(format!("Node/{}", node.name()), "Ready, but none of its new pods starts");
    explanation.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// A pod that waits for its sandbox. A pod of a DaemonSet comes last, because it may have further problems.
fn refused<'c>(case: &Case<'c>, node: &Node) -> Option<(&'c Pod, Sandbox)> {
    let of = |pod: &Pod| {
        let own =
            case.cluster.pod_events_on(node.name()).filter(|e| e.names(&pod.metadata) && waits_for_sandbox(pod, e));
        let refusal = |e: &Event| refused_sandbox(e).or_else(|| refuses_container(e).then_some(Sandbox::Runtime));
        own.filter_map(|e| Some((e.last_seen(), refusal(e)?))).max_by_key(|(at, _)| *at)
    };
    let waiting = case.pods().filter_map(|pod| Some((pod, of(pod)?.1)));
    let unspecific =
        waiting.filter(|(_, sandbox)| matches!(sandbox, Sandbox::Network | Sandbox::Runtime | Sandbox::Unit));
    unspecific.min_by_key(|(pod, _)| (pod.daemon_set().is_some(), &pod.metadata.name))
}

/// An old systemd (219 is known for it) may keep units that have ended, until it starts no new ones.
/// Source: kubernetes/kubernetes#57345.
fn without_units(case: &Case, node: &Node, pod: &Pod) -> Explanation {
    let said = case.cluster.pod_events_on(node.name()).filter(|e| e.names(&pod.metadata));
    let said = said.filter_map(|e| e.message.split_once(NO_UNIT_STARTS)).map(|(_, why)| why).next().unwrap_or_default();
    let said = source_text::mask(said.lines().next().unwrap_or_default().trim());
    let says = format!("systemd on the node starts no unit, so the kubelet mounts no volume: {said}");
    let link = Link::new(format!("Pod/{}", pod.metadata.name), format!("its volumes wait: {NO_UNIT_STARTS}{said}"));
    Explanation::new(Proof::Open, says, Blame::object("v1", "Node", node.name()), link)
        .fix(
            "Clear the ended units of systemd on the node (systemctl reset-failed, then systemctl daemon-reexec), or \
             restart the node, which stops its pods. An image with a newer systemd does not keep ended units.",
        )
        .ask("Which pods does it keep from their volumes?", "kubectl get events -A --field-selector reason=FailedMount")
        .change("Keep new pods away until then", format!("kubectl cordon {}", node.name()))
}

/// If every pod fails alike, no single pod is at fault.
fn of_node(case: &Case, node: &Node, explanation: Explanation, sandbox: Sandbox) -> Explanation {
    let is_of_pod = explanation.links.len() == 1 && explanation.open.is_some();
    if !is_of_pod {
        return explanation;
    }
    if let Some(explanation) = proxied::explained(case, node, &explanation) {
        return explanation;
    }
    if let Some(set) = network_plugin::turned_away(case, &explanation.why) {
        return turned_away(case, set, explanation);
    }
    // Whose token it was is open, and the plugin that sets up the network may have none.
    let is_token = explanation.why.trim_end_matches('.').ends_with(": Unauthorized");
    let plugin = network_plugin::plugin(case, node).filter(|_| sandbox == Sandbox::Network && !is_token);
    let of_plugin = |pod: &&Pod| plugin.is_some_and(|set| pod.daemon_set() == Some(&set.metadata.name));
    if let Some(agent) = case.pods().find(of_plugin).filter(|agent| !agent.is_ready() && agent.trouble().is_some()) {
        let deeper = of_pod(case, node, agent);
        // What the pods meet stands in the chain.
        let suffers = explanation.links.first().map_or("its pods", |link| link.object.trim_start_matches("Pod/"));
        let why = format!("pod {suffers} gets no network, because {}", deeper.why);
        return explanation.links.into_iter().rev().fold(Explanation { why, ..deeper }, Explanation::after);
    }
    let blame = plugin.map_or_else(
        || Blame::object("v1", "Node", node.name()),
        |set| {
            let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
            Blame::object("apps/v1", "DaemonSet", &set.metadata.name).namespace(namespace)
        },
    );
    let fix = match plugin {
        Some(set) => format!("Read the log of DaemonSet {} on this node: it refuses every pod.", set.metadata.name),
        None => "Read what containerd logs on the node (journalctl -u containerd), or replace the node, which stops \
                 its pods. Its runtime starts no pod."
            .to_owned(),
    };
    Explanation { blame, ..explanation }.fix(fix)
}

/// The API server rejects an expired token that a plugin has kept too long, while the plugin's pod stays Ready.
/// Source: kubernetes v1.36.3 pkg/serviceaccount/claims.go; istio/istio#38077.
fn turned_away(case: &Case, set: &DaemonSet, explanation: Explanation) -> Explanation {
    let (name, namespace) = (&set.metadata.name, set.metadata.namespace.as_deref().unwrap_or_default());
    let pod = case.pods().find(|pod| pod.daemon_set() == Some(name)).map_or("", |pod| &pod.metadata.name);
    let why = format!(
        "{}; only the plugin of DaemonSet {name} asks the API server itself there, and its token may have expired",
        explanation.why.trim_end_matches('.')
    );
    let blame = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
    let link =
        Link::new(format!("DaemonSet/{name}"), "only its plugin asks the API server, which answers Unauthorized");
    Explanation { why, blame, ..explanation }
        .behind(link)
        .fix(format!(
            "Restart pod {pod}, which writes a new token for its plugin and leaves running pods alone. Upgrade \
             DaemonSet {name} to a version that renews the token."
        ))
        .change(
            "Restart its pods, so that they write a new token",
            format!("kubectl rollout restart daemonset -n {namespace} {name}"),
        )
}
