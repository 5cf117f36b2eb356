//! Karpenter makes one machine after the other for a pod, and a DaemonSet holds the port that it asks for on each.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::port_held::port_held;
use crate::case::stage::Symptom;
use crate::case::timestamp;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "PortHeldEverywhere",
    summary: "Machines are made in vain for a pod: it asks for a port of the Node (hostPort) that a DaemonSet holds on each",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodePools, Input::Nodes, Input::Events, Input::Pods],
    lint: false,
    versions: "Karpenter before 1.4; later where it does not count the DaemonSet",
    page: include_str!("../../../pages/PortHeldEverywhere.md"),
    check,
};

/// Source: core v1.3.3 pkg/controllers/provisioning/scheduling/nodeclaim.go `NewNodeClaim`: a new machine has no port in
/// use; v1.4.0 scheduler.go `getDaemonHostPortUsage`.
fn check(case: &Case) -> Opinion {
    let Some(pool) = case.pool().filter(|_| case.wait.symptom == Symptom::PortHeld) else { return Opinion::Silent };
    let Some(found) = port_held(case.cluster, pool) else { return Opinion::Silent };
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
            "Karpenter makes one machine of NodePool {name} after the other for pod {namespace}/{pod} ({} since {}), and none can take it: the pod asks for port {port} of the Node (hostPort), which DaemonSet {of_set}/{set} holds on every machine that it runs on, such as Node {node}.",
            found.made,
            timestamp(found.since),
        ),
        Evidence::new(
            format!("Pod/{}", found.holder.metadata.name),
            "spec.containers[*].ports[*].hostPort",
            port.to_string(),
            format!("on Node {node}: a DaemonSet's pod is on a new machine before any other"),
        ),
    )
    .with(Evidence::new(
        format!("Pod/{pod}"),
        "spec.containers[*].ports[*].hostPort",
        port.to_string(),
        "Karpenter before 1.4 takes the ports of a machine that does not exist yet for free",
    ))
    .linked([
        Link::new(format!("Pod/{pod}"), format!("it asks for port {port} of the Node")),
        Link::new(format!("Pod/{}", found.holder.metadata.name), "it has that port on the machine that was made for the other"),
        Link::new(format!("NodePool/{name}"), "its machines come, stay empty and go"),
    ])
    .blaming(Blame::object(api, kind, workload).namespace(&namespace).field(field))
    .fix(format!(
        "Give {kind} {workload} another port of the Node than {port}, or none: a Service or a Pod's own address needs no hostPort. Or take it from DaemonSet {set}. A newer Karpenter makes no more machines for the pod, which then still waits."
    ))
    .step(
        Risk::Mutating,
        "Give it another port, or none",
        Some(format!("kubectl edit {} -n {namespace} {workload}", kind.to_lowercase())),
    )
    .step(
        Risk::Inspect,
        "See which ports the DaemonSet takes",
        Some(format!("kubectl get daemonset -n {of_set} {set} -o jsonpath='{{.spec.template.spec.containers[*].ports}}'")),
    )
    .into()
}
