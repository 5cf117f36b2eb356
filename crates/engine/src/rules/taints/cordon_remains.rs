//! aws-node-termination-handler took the Node out of service for an interruption that did not come.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::upstream::termination_handler;

pub static RULE: Rule = Rule {
    cause: "CordonRemains",
    summary: "aws-node-termination-handler cordoned the Node for an interruption that did not come, and does not uncordon it",
    stages: &[Stage::Ready],
    reads: &[Input::DaemonSets],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/CordonRemains.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    if case.wait.symptom != Symptom::Cordoned {
        return Opinion::Silent;
    }
    let Some((node, cordon)) = case.node.and_then(|n| Some((n, termination_handler::cordon(n)?))) else {
        return Opinion::Silent;
    };
    let name = node.name();
    let handler = case.cluster.daemon_sets().find(|set| termination_handler::is_daemon_set(&set.metadata.name));
    let rebalance = handler.filter(|set| set.env("ENABLE_REBALANCE_MONITORING") == Some("true"));
    let why = if rebalance.is_some() { " (it acts on mere rebalance recommendations)" } else { "" };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is Ready and unschedulable: aws-node-termination-handler cordoned it for an interruption{why} that has not come since {}, and does not uncordon it.",
            case.since()
        ),
        Evidence::new(
            format!("Node/{name}"),
            cordon.field,
            cordon.says,
            "the handler cordons what is about to be interrupted, and leaves the rest to the end of the instance",
        ),
    );
    let finding = match handler {
        Some(set) => {
            let namespace = set.metadata.namespace.as_deref().unwrap_or("kube-system");
            let object = format!("DaemonSet/{}", set.metadata.name);
            let finding = finding.blaming(
                Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
                    .namespace(namespace)
                    .field("spec.template.spec.containers[0].env"),
            );
            if rebalance.is_some() {
                finding
                    .with(Evidence::new(
                        object,
                        "spec.template.spec.containers[0].env",
                        "ENABLE_REBALANCE_MONITORING=true",
                        "EC2 recommends to leave an instance long before it interrupts it, and often does not interrupt it",
                    ))
                    .fix("Turn off rebalance monitoring of aws-node-termination-handler, or remove it where Karpenter handles interruptions, and uncordon the Node.")
                    .step(
                        Risk::Mutating,
                        "Turn off rebalance monitoring; keep it in the chart's values",
                        Some(format!(
                            "kubectl set env -n {namespace} daemonset/{} ENABLE_REBALANCE_MONITORING=false",
                            set.metadata.name
                        )),
                    )
            } else {
                finding
                    .fix("Uncordon the Node, and remove aws-node-termination-handler where Karpenter handles interruptions.")
                    .step(
                        Risk::Inspect,
                        "See what the handler reacts to",
                        Some(format!("kubectl describe daemonset -n {namespace} {}", set.metadata.name)),
                    )
            }
        }
        None => finding
            .blaming(Blame::object("v1", "Node", name).field(cordon.field))
            .fix("Uncordon the Node, and see what aws-node-termination-handler reacts to, where it runs."),
    };
    let finding = finding.step(Risk::LowRisk, "Let pods come again", Some(format!("kubectl uncordon {name}")));
    match cordon.taint.as_deref().and_then(|taint| taint.split(['=', ':']).next()) {
        Some(key) => finding
            .step(Risk::LowRisk, "Remove the handler's taint", Some(format!("kubectl taint node {name} {key}-")))
            .into(),
        None => finding.into(),
    }
}
