//! Karpenter registers node after node, and cannot keep up.

use crate::rules::prelude::*;

rule! {
    cause: KarpenterIsBehind,
    summary: "Karpenter works through a queue of nodes, and each waits for minutes",
    stages: [Register, Initialize],
    reads: [Deployments],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::KarpenterBehind {
        return None;
    }
    let (done, waits) = match case.stage() {
        Stage::Register => ("registers", "with a Node"),
        _ => ("initializes", "with a Ready Node"),
    };
    let subject = case.subject().replacen('/', " ", 1);
    let summary = format!(
        "Karpenter is behind: NodeClaims of {subject} {waits} wait for minutes, and it {done} one after the other."
    );
    let finding = Finding::new(Confidence::Likely, summary, case.wait.evidence.clone());
    let Some((namespace, name)) = case.karpenter().and_then(|k| k.deployment.split_once('/')) else {
        return finding.fix("Wait: Karpenter handles them in order.").into();
    };
    finding
        .blaming(
            Blame::object("apps/v1", "Deployment", name)
                .namespace(namespace)
                .field("spec.template.spec.containers[*].resources"),
        )
        .fix(
            "Wait: the queue gets shorter by itself, unless a node reaches Karpenter's 15 minutes. Then give Karpenter \
             more CPU, and spread out what starts so many nodes at once.",
        )
        .inspect(
            "See how much CPU it may use",
            format!("kubectl describe pods -n {namespace} -l app.kubernetes.io/name=karpenter"),
        )
        .change(
            "When the queue is empty, give Karpenter more CPU (this restarts it, which takes a moment)",
            format!("kubectl edit deployment -n {namespace} {name}"),
        )
        .unknown(
            "Is it short of CPU, or does the API server slow it down?",
            format!("kubectl logs -n {namespace} deployment/{name} --tail=-1 | grep -i throttl"),
        )
        .into()
}
