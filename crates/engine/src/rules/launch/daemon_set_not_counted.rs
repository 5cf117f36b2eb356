//! Karpenter launches one node after the other for a pod, because a DaemonSet that it does not count takes the room.

use crate::case::undersized_nodes::TooSmall;
use crate::rules::prelude::*;

rule! {
    cause: DaemonSetNotCounted,
    summary: "New nodes are too small for the pods that they are launched for: Karpenter does not count a DaemonSet \
              that selects a label which is added after launch",
    stages: [Launch],
    reads: [NodePools, NodeClaims, Nodes, Events, Pods, DaemonSets, Deployments],
    versions: "all; karpenter.sh/registered and karpenter.sh/initialized before 1.14",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let uncounted = case.undersized_nodes().filter_map(|found| match found.why {
        TooSmall::Uncounted { set, taken, label } => Some((found, set, taken, label)),
        TooSmall::Overrated { .. } => None,
    });
    let found = uncounted.min_by_key(|(found, ..)| found.since);
    let (found, daemons, taken, label) = found?;
    let (name, node, resource) = (pool.name(), found.node.name(), found.resource);
    let namespace = |namespace: Option<&'_ str>| namespace.unwrap_or("default").to_owned();
    let of_pod = namespace(found.pod.metadata.namespace.as_deref());
    let of_set = namespace(daemons.metadata.namespace.as_deref());
    let set = &daemons.metadata.name;
    let (asked, free, taken) = (found.amount(found.asked), found.amount(found.free), found.amount(taken));
    let selected = daemons.spec.template.spec.node_selector.contains_key(label);
    let field = if selected { "spec.template.spec.nodeSelector" } else { "spec.template.spec.affinity.nodeAffinity" };
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches one node of NodePool {name} after the other for Pod {of_pod}/{}, but none has room for \
             it: Node {node} has {free} of {resource} left, and {asked} is requested. DaemonSet {of_set}/{set} takes \
             {taken} there. Karpenter does not count it, because it selects the label {label}, which the NodePool does \
             not give its nodes.",
            found.pod.metadata.name
        ),
        Evidence::new(
            format!("Pod/{}", found.pod.metadata.name),
            "events",
            "Nominated",
            "Karpenter has launched at least three nodes for it, and it still waits",
        )
        .figures(format!("{} nodes so far", found.made)),
    )
    .with(Evidence::new(
        format!("Node/{node}"),
        format!("status.allocatable['{resource}']"),
        found.node.status.allocatable.get(resource).unwrap_or_default(),
        format!("{free} is left on it; without the DaemonSet the pod would fit"),
    ))
    .with(Evidence::new(
        format!("DaemonSet/{of_set}/{set}"),
        field,
        label,
        "before a node exists, Karpenter knows only the labels that the NodePool gives and those of the instance type",
    ))
    .blaming(Blame::object("apps/v1", "DaemonSet", set).namespace(&of_set).field(field))
    .fix(format!(
        "If the DaemonSet is meant for Karpenter's nodes, let it select what the NodePool gives: karpenter.sh/nodepool \
         (operator Exists). If {label} is your own label, add it to the NodePool (spec.template.metadata.labels)."
    ))
    .change("Change what the DaemonSet selects", format!("kubectl edit daemonset -n {of_set} {set}"))
    .into()
}
