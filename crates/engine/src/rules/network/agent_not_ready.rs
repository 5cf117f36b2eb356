//! The network plugin or kube-proxy does not work on a Ready Node: the scheduler assigns pods that get no network.

use crate::api::{Link, Stage};
use crate::case::Case;
use crate::case::failing_agent::failing_agent;
use crate::case::finding::Opinion;
use crate::case::stage::Symptom;
use crate::explain::agent_chain::of_pod;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::upstream::network_agents::KUBE_PROXY;

pub static RULE: Rule = Rule {
    cause: "AgentNotReady",
    summary: "The Node is Ready, but its network plugin or kube-proxy has not been for long: pods scheduled there lack \
              network",
    stages: &[Stage::Ready],
    reads: &[
        Input::NodeClaims,
        Input::Nodes,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::DaemonSets,
        Input::Logs,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/AgentNotReady.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|_| case.wait.symptom == Symptom::AgentFails) else { return Opinion::Silent };
    let Some((pod, _)) = failing_agent(case.pods()) else { return Opinion::Silent };
    let set = pod.daemon_set().unwrap_or(&pod.metadata.name);
    let explanation = of_pod(case, node, pod);
    let lacks = if set == KUBE_PROXY { "way to Services" } else { "network" };
    let summary = format!(
        "Node {} is Ready, but its {set} has not been since {}: {}. The scheduler still assigns pods to the node, and \
         they may lack their {lacks}.",
        node.name(),
        case.since(),
        explanation.why.trim_end_matches('.')
    );
    let symptom = Link::new(format!("Node/{}", node.name()), "Ready, and accepts pods");
    explanation.found(case, summary, case.wait.evidence.clone(), symptom).into()
}
