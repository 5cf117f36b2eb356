//! The pods of a Ready Node are unreachable since a new revision of its network plugin or kube-proxy runs there.

use crate::case::by_revision::{ByRevision, by_revision};
use crate::objects::Pod;
use crate::rules::prelude::*;

rule! {
    cause: AgentUpdateCutsPods,
    summary: "The Node is Ready, but its pods are unreachable since a new revision of the network plugin or of \
              kube-proxy runs there",
    stages: [Ready],
    reads: [Nodes, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::OutOfReach)?;
    let found = by_revision(case.cluster, node, case.now)?;
    let ByRevision { agent, set, pod, event, cut, well, .. } = found;
    let namespace = agent.metadata.namespace.as_deref().unwrap_or_default();
    let only = format!(
        "pods are unreachable on {cut} Nodes with its new revision{}, and on none of {well} with another",
        image(agent)
    );
    let summary = format!(
        "Node {} is Ready, but its pods are unreachable since {}, just after pod {} of DaemonSet {set} started: \
         {only}, where pods with the same template work.",
        node.name(),
        case.since(),
        agent.metadata.name
    );
    Finding::new(Confidence::Likely, summary, case.wait.evidence.clone())
        .linked([
            Link::new(format!("Node/{}", node.name()), "Ready, but its pods are unreachable"),
            Link::new(format!("Pod/{}", pod.metadata.name), event.said()),
            Link::new(format!("DaemonSet/{set}"), only),
        ])
        .blaming(Blame::object("apps/v1", "DaemonSet", set).namespace(namespace).field("spec.template"))
        .fix(format!(
            "Stop the update of DaemonSet {set} and go back to its former revision. Then read in the release notes of \
             the new revision which of its settings must change. If you edited its configuration together with the \
             update, that edit may be the reason instead."
        ))
        .inspect(
            "See what differs between its revisions",
            format!("kubectl rollout history daemonset -n {namespace} {set}"),
        )
        .change("Go back to the former revision", format!("kubectl rollout undo daemonset -n {namespace} {set}"))
        .unknown(
            format!("How does the new revision of {set} change routes and rules of pods that ran before the update?"),
            format!("kubectl logs -n {namespace} {} --all-containers --tail=50", agent.metadata.name),
        )
        .into()
}

fn image(agent: &Pod) -> String {
    let image = agent.spec.containers.first().and_then(|c| c.image.rsplit('/').next());
    image.filter(|image| !image.is_empty()).map_or_else(String::new, |image| format!(" ({image})"))
}
