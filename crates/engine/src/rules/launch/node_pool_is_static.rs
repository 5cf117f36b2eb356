//! A NodePool with a fixed number of nodes, and a pod that waits for one more of them.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NodePoolIsStatic",
    summary: "The NodePool keeps a fixed number of nodes, and pods that select its nodes wait for more",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::NodeClaims, Input::Events, Input::Pods],
    lint: false,
    versions: "Karpenter 1.8 and later, with the feature gate StaticCapacity",
    page: include_str!("../../../pages/NodePoolIsStatic.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let Some(replicas) = pool.spec.replicas else { return Opinion::Silent };
    let Some(told) = case.unplaced().find(|u| u.passed_over_as_static(pool)) else { return Opinion::Silent };
    let (name, pod) = (pool.name(), &told.event.involved_object);
    // The nodes that are still to come may be enough.
    let claims = case.cluster.claims_of_pool(name).filter(|c| c.metadata.deletion_timestamp.is_none());
    if claims.filter(|c| c.is_true("Initialized")).count() < usize::try_from(replicas).unwrap_or_default() {
        return Opinion::Silent;
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
    .step(
        Risk::Mutating,
        "Raise the number of nodes by one",
        Some(format!("kubectl scale nodepool {name} --replicas={}", replicas.saturating_add(1))),
    )
    .into()
}
