//! The Node is cordoned and drained, but pods that tolerate the cordon come back to it.

use crate::case::refilled_drain::{IN_A_ROW, left_over, refill};
use crate::case::timestamp;
use crate::rules::prelude::*;
use crate::upstream::cordons::UNSCHEDULABLE_TAINT;

rule! {
    cause: DrainRefilled,
    summary: "The Node is cordoned and drained, but pods that tolerate the cordon come back to it",
    stages: [Ready],
    reads: [Pods, Events],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let found = match case.wait.symptom {
        Symptom::DrainRefilled => refill(case.cluster, node),
        // Live, nobody reads what kubelets say of the pods that they stop.
        Symptom::DrainHeld if case.claim.is_none() => left_over(case.cluster, node),
        _ => None,
    };
    let found = found?;
    let (name, pod) = (node.name(), &found.pod.metadata.name);
    let namespace = found.pod.metadata.namespace.as_deref().unwrap_or("default");
    let (kind, workload) = found.pod.workload();
    let resource = kind.to_lowercase();
    let field = "spec.template.spec.tolerations";
    let is_seen = found.gone >= IN_A_ROW;
    let now = match found.pod.metadata.creation_timestamp {
        Some(_) if is_seen => format!("{} have come and gone since, and {pod} is there now", found.gone),
        Some(came) => format!("{pod}, which came at {}, is the only one left there", timestamp(came)),
        None => format!("{pod} is there now"),
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is cordoned since {} but does not get empty: pods of {kind} {namespace}/{workload} tolerate \
             the taint {UNSCHEDULABLE_TAINT}, so the scheduler may assign each replacement to this node again: {now}.",
            case.since(),
        ),
        Evidence::new(
            format!("Pod/{pod}"),
            "spec.tolerations",
            UNSCHEDULABLE_TAINT,
            "it is younger than the cordon, and its toleration makes the scheduler accept a cordoned Node",
        ),
    )
    .linked([
        Link::new(format!("{kind}/{workload}"), "its pods tolerate every cordon"),
        Link::new(format!("Pod/{pod}"), "it came after the cordon"),
        Link::new(format!("Node/{name}"), "it is cordoned, but not empty"),
    ])
    .blaming(Blame::object("apps/v1", kind, workload).namespace(namespace).field(field))
    .fix(format!(
        "Remove the toleration (operator Exists without a key, or with effect NoSchedule alone) from {kind} {workload} \
         at its source: its chart's values or its operator's resource. To finish this drain now, terminate the \
         instance: only that pod is left on it."
    ))
    .inspect(
        "See which taints it tolerates",
        format!("kubectl get {resource} -n {namespace} {workload} -o jsonpath='{{.spec.template.spec.tolerations}}'"),
    );
    if !is_seen {
        return finding.with(case.wait.evidence.clone()).into();
    }
    let because = "pods of the same workload stopped there since the cordon";
    finding
        .with(
            Evidence::new(format!("Node/{name}"), "events", "Killing", because).figures(format!("{} pods", found.gone)),
        )
        .into()
}
