//! The Node is cordoned and drained, but pods that tolerate the cordon come back to it.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::refilled_drain::{IN_A_ROW, left_over, refill};
use crate::case::stage::Symptom;
use crate::case::{Case, timestamp};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::upstream::cordons::UNSCHEDULABLE_TAINT;

pub static RULE: Rule = Rule {
    cause: "DrainRefilled",
    summary: "The Node is cordoned and drained, but pods that tolerate the cordon come back to it",
    stages: &[Stage::Ready],
    reads: &[Input::Pods, Input::Events],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/DrainRefilled.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let found = match case.wait.symptom {
        Symptom::DrainRefilled => refill(case.cluster, node),
        // Live, nobody reads what kubelets say of the pods that they stop.
        Symptom::DrainHeld if case.claim.is_none() => left_over(case.cluster, node),
        _ => None,
    };
    let Some(found) = found else { return Opinion::Silent };
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
    .step(
        Risk::Inspect,
        "See which taints it tolerates",
        Some(format!(
            "kubectl get {resource} -n {namespace} {workload} -o jsonpath='{{.spec.template.spec.tolerations}}'"
        )),
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
