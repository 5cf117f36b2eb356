//! Karpenter launches one node after the other for a pod, but a DaemonSet uses the port that it requests on each.

use crate::case::port_held::port_held;
use crate::case::timestamp;
use crate::rules::prelude::*;

rule! {
    cause: PortHeldEverywhere,
    summary: "Karpenter launches nodes for a pod that cannot run on them: it requests a port of the Node (hostPort) \
              that a DaemonSet uses on each",
    stages: [Launch],
    reads: [NodeClaims, NodePools, Nodes, Events, Pods],
    versions: "Karpenter before 1.4; later versions if they do not count the DaemonSet",
}

/// Source: core v1.3.3 pkg/controllers/provisioning/scheduling/nodeclaim.go `NewNodeClaim`: a new node has no port in
/// use; v1.4.0 scheduler.go `getDaemonHostPortUsage`.
fn check(case: &Case) -> Option<Opinion> {
    let pool = case.pool().filter(|_| case.wait.symptom == Symptom::PortHeld)?;
    let found = port_held(case.cluster, pool)?;
    let (name, node, port, set) = (pool.name(), found.node.name(), found.port, found.set);
    let namespace_of = |namespace: Option<&str>| namespace.unwrap_or("default").to_owned();
    let namespace = namespace_of(found.pod.metadata.namespace.as_deref());
    let of_set = namespace_of(found.holder.metadata.namespace.as_deref());
    let pod = &found.pod.metadata.name;
    let (kind, workload) = found.pod.workload();
    let (api, field) = match kind {
        "Pod" => ("v1", "spec.containers"),
        "Job" => ("batch/v1", "spec.template.spec.containers"),
        _ => ("apps/v1", "spec.template.spec.containers"),
    };
    Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches one node of NodePool {name} after the other for pod {namespace}/{pod} ({} since {}), \
             but the pod can run on none. It requests port {port} of the Node (hostPort), which DaemonSet \
             {of_set}/{set} uses on every node that it runs on, such as Node {node}.",
            found.made,
            timestamp(found.since),
        ),
        Evidence::new(
            format!("Pod/{}", found.holder.metadata.name),
            "spec.containers[*].ports[*].hostPort",
            port.to_string(),
            format!("on Node {node}: a DaemonSet's pod starts first on a new node"),
        ),
    )
    .with(Evidence::new(
        format!("Pod/{pod}"),
        "spec.containers[*].ports[*].hostPort",
        port.to_string(),
        "Karpenter before 1.4 assumes that the ports of a new node are free",
    ))
    .linked([
        Link::new(format!("Pod/{pod}"), format!("it requests port {port} of the Node")),
        Link::new(
            format!("Pod/{}", found.holder.metadata.name),
            "it has that port on the node that was launched for the other pod",
        ),
        Link::new(format!("NodePool/{name}"), "its nodes come, stay empty and go"),
    ])
    .blaming(Blame::object(api, kind, workload).namespace(&namespace).field(field))
    .fix(format!(
        "Set another hostPort than {port} in {kind} {workload}, or none: a pod that clients reach through a Service or \
         its own IP needs no hostPort. Or remove the hostPort from DaemonSet {set}. A newer Karpenter stops launching \
         nodes for the pod, but the pod still waits."
    ))
    .change("Set another hostPort, or none", format!("kubectl edit {} -n {namespace} {workload}", kind.to_lowercase()))
    .inspect(
        "See which ports the DaemonSet uses",
        format!("kubectl get daemonset -n {of_set} {set} -o jsonpath='{{.spec.template.spec.containers[*].ports}}'"),
    )
    .into()
}
