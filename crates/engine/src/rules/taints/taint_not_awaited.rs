//! A taint of your own keeps a pod from each node that Karpenter launches for it. Karpenter does not know that the
//! taint will go, and removes the node as empty.

use crate::case::emptied_early::emptied_early;
use crate::case::timestamp;
use crate::rules::prelude::*;

rule! {
    cause: TaintNotAwaited,
    summary: "Karpenter removes nodes as empty before their pod can start there, because they get a taint that the \
              NodePool does not list under startupTaints",
    stages: [Launch],
    reads: [NodeClaims, NodePools, Nodes, Events, Pods],
    versions: "Karpenter 0.32 and later",
}

/// Source: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/initialization.go `StartupTaintsRemoved`: Karpenter only
/// waits for taints among the startup taints.
fn check(case: &Case) -> Option<Opinion> {
    let pool = case.pool().filter(|_| case.wait.symptom == Symptom::EmptiedEarly)?;
    let found = emptied_early(case.cluster, pool)?;
    let (name, pod, node, taint) = (pool.name(), found.pod, found.node.name(), found.taint);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let pod = &pod.metadata.name;
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches one node of NodePool {name} after the other for pod {namespace}/{pod} and removes each \
             as empty: {} since {}. They get taint {taint} (Node {node} has it), which the pod does not tolerate. The \
             NodePool does not list it under startupTaints, so Karpenter does not wait for it to go.",
            found.removed,
            timestamp(found.since),
        ),
        Evidence::new(
            format!("Node/{node}"),
            "spec.taints",
            taint.to_string(),
            "no pod without a toleration is scheduled there, and for Karpenter the Node is usable and empty",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template.spec.startupTaints",
        "absent",
        "Karpenter expects the removal of a startup taint. Until then it neither initializes nor removes the Node",
    ))
    .linked([
        Link::new(format!("Pod/{pod}"), "Karpenter launches nodes for it, but it never starts there"),
        Link::new(format!("Node/{node}"), format!("it has taint {taint}")),
        Link::new(format!("NodePool/{name}"), "it does not list the taint under startupTaints"),
    ])
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.startupTaints"))
    .fix(format!(
        "Add {taint} to spec.template.spec.startupTaints of NodePool {name}, if the component that sets it also \
         removes it. Otherwise add a toleration to the pod, or keep that component away from these nodes. Changing the \
         NodePool makes Karpenter replace its nodes as drifted."
    ))
    .inspect("See which component wrote the taint", format!("kubectl get node {node} --show-managed-fields -o yaml"))
    .change("Add the taint to startupTaints", format!("kubectl edit nodepool {name}"))
    .into()
}
