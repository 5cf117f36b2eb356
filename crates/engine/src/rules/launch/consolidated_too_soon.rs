//! Karpenter consolidates each node minutes after its launch, before a pod has started there.

use crate::case::consolidated_early::consolidated_early;
use crate::case::{duration, timestamp};
use crate::rules::prelude::*;

rule! {
    cause: ConsolidatedTooSoon,
    summary: "Karpenter consolidates each node of the NodePool minutes after its launch, and a pod starts over on each",
    stages: [Launch],
    reads: [NodeClaims, NodePools, Nodes, Events, Pods],
    versions: "Karpenter 1.0 and later",
}

/// Source: core v1.14.1 pkg/controllers/nodeclaim/disruption/consolidation.go `Reconcile`: consolidateAfter begins
/// again only when a pod is added or removed, not while it pulls its image.
fn check(case: &Case) -> Option<Opinion> {
    let is_so = case.wait.symptom == Symptom::ConsolidatedEarly;
    let pool = case.pool().filter(|_| is_so)?;
    let found = consolidated_early(case.cluster, pool, case.now)?;
    let (name, node, pod) = (pool.name(), found.node.name(), &found.pod.metadata.name);
    let namespace = found.pod.metadata.namespace.as_deref().unwrap_or("default");
    let (kind, workload) = found.pod.workload();
    Finding::new(
        Confidence::Likely,
        format!(
            "Karpenter consolidates the nodes of NodePool {name} at most {} after their launch: {} in a row since {}. \
             It had launched each for pods of {kind} {namespace}/{workload}. Pod {pod} has not started on the next \
             one, Node {node}, either.",
            duration(found.within),
            found.removed,
            timestamp(found.since),
        ),
        Evidence::new(
            format!("Event NodeClaim/{}", found.last.involved_object.name),
            "message",
            found.last.said(),
            "the last of these nodes",
        ),
    )
    .with(Evidence::new(
        format!("Pod/{pod}"),
        "status.phase",
        "Pending",
        format!("on Node {node}, where it pulls its images again"),
    ))
    .linked([
        Link::new(format!("NodePool/{name}"), "its nodes are consolidated minutes after their launch"),
        Link::new(format!("Pod/{pod}"), "it starts over on each next node"),
    ])
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.disruption.consolidateAfter"))
    .fix(format!(
        "Set spec.disruption.consolidateAfter of NodePool {name} to more than a new node and its pods need to start, \
         such as 15m. This replaces no node."
    ))
    .inspect(
        "See when Karpenter may consolidate",
        format!("kubectl get nodepool {name} -o jsonpath='{{.spec.disruption}}'"),
    )
    .change(
        "Let it wait longer",
        format!(
            r#"kubectl patch nodepool {name} --type=merge -p '{{"spec":{{"disruption":{{"consolidateAfter":"15m"}}}}}}'"#
        ),
    )
    .into()
}
