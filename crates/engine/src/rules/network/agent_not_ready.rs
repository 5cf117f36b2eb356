//! The network plugin or kube-proxy does not work on a Ready Node: the scheduler assigns pods that get no network.

use crate::case::failing_agent::failing_agent;
use crate::explain::agent_chain::of_pod;
use crate::rules::prelude::*;
use crate::upstream::network_agents::KUBE_PROXY;

rule! {
    cause: AgentNotReady,
    summary: "The Node is Ready, but its network plugin or kube-proxy has not been for long: pods scheduled there lack \
              network",
    stages: [Ready],
    reads: [NodeClaims, Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::AgentFails)?;
    let (pod, _) = failing_agent(case.pods())?;
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
