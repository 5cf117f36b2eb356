//! A NodePool with a fixed number of nodes, and a pod that waits for one more of them.

use crate::rules::prelude::*;

rule! {
    cause: NodePoolIsStatic,
    summary: "The NodePool keeps a fixed number of nodes, and pods that select its nodes wait for more",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeClaims, Events, Pods],
    versions: "Karpenter 1.8 and later, with the feature gate StaticCapacity",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let replicas = pool.spec.replicas?;
    let told = case.unplaced().find(|u| u.passed_over_as_static(pool))?;
    let (name, pod) = (pool.name(), &told.event.involved_object);
    // The nodes that are still to come may be enough.
    let claims = case.cluster.claims_of_pool(name).filter(|c| c.metadata.deletion_timestamp.is_none());
    if claims.filter(|c| c.is_true("Initialized")).count() < usize::try_from(replicas).unwrap_or_default() {
        return None;
    }
    let namespace = pod.namespace.as_deref().unwrap_or("default");
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} is static: it keeps {replicas} nodes (spec.replicas), whatever pods wait for. Pod \
             {namespace}/{} selects its nodes, and gets no new one.",
            pod.name
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.replicas",
            replicas.to_string(),
            "Karpenter skips a static NodePool when it searches room for pods; limits.nodes is not a number to grow to",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", pod.name),
        "message",
        told.event.said(),
        "the pod waits, but Karpenter does not even name the NodePool",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.replicas"))
    .fix(
        "Raise spec.replicas, or give these pods a NodePool without it. You cannot remove replicas from a NodePool \
         that has them.",
    )
    .change(
        "Raise the number of nodes by one",
        format!("kubectl scale nodepool {name} --replicas={}", replicas.saturating_add(1)),
    )
    .into()
}
