//! A taint of somebody's own keeps a pod from each machine that Karpenter makes for it, and Karpenter, not told to wait
//! for the taint to go, removes the machine as empty.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::emptied_early::emptied_early;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::timestamp;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "TaintNotAwaited",
    summary: "Machines are removed as empty before the pod gets there that they are made for: a taint is set on them that is not among the startup taints of their NodePool",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodePools, Input::Nodes, Input::Events, Input::Pods],
    lint: false,
    versions: "Karpenter 0.32 and later",
    page: include_str!("../../../pages/TaintNotAwaited.md"),
    check,
};

/// Source: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/initialization.go `StartupTaintsRemoved`: what is not among
/// the startup taints, nobody waits for.
fn check(case: &Case) -> Opinion {
    let Some(pool) = case.pool().filter(|_| case.wait.symptom == Symptom::EmptiedEarly) else { return Opinion::Silent };
    let Some(found) = emptied_early(case.cluster, pool) else { return Opinion::Silent };
    let (name, pod, node, taint) = (pool.name(), found.pod, found.node.name(), found.taint);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let pod = &pod.metadata.name;
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter makes one machine of NodePool {name} after the other for pod {namespace}/{pod} and removes each as empty: {} since {}. Taint {taint}, which the pod does not tolerate, is put on them (Node {node} has it), and it is not among startupTaints of the NodePool, so that Karpenter does not wait for it to go.",
            found.removed,
            timestamp(found.since),
        ),
        Evidence::new(
            format!("Node/{node}"),
            "spec.taints",
            taint.to_string(),
            "nothing that does not tolerate it is scheduled there, and to Karpenter the Node is usable, and empty",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template.spec.startupTaints",
        "without it",
        "of a startup taint Karpenter knows that it goes: until then the Node is not initialized, and not removed",
    ))
    .linked([
        Link::new(format!("Pod/{pod}"), "machines are made for it, and it never gets there"),
        Link::new(format!("Node/{node}"), format!("it has taint {taint}")),
        Link::new(format!("NodePool/{name}"), "it does not name the taint among its startup taints"),
    ])
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.startupTaints"))
    .fix(format!("Add {taint} to spec.template.spec.startupTaints of NodePool {name}, where what sets it takes it off again; else let the pod tolerate it, or keep what sets it from these Nodes."))
    .step(Risk::Inspect, "See who wrote the taint", Some(format!("kubectl get node {node} --show-managed-fields -o yaml")))
    .step(Risk::Mutating, "Add the taint to startupTaints", Some(format!("kubectl edit nodepool {name}")))
    .into()
}
