//! A controller cordoned the Node for an interruption that did not come, a reboot, a removal or a new driver, and left
//! the cordon.

use crate::case::timestamp;
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::cordons::{Cordon, Cordoner, cordon};
use crate::upstream::termination_handler;

rule! {
    cause: CordonRemains,
    summary: "A controller (aws-node-termination-handler, kured, cluster-autoscaler, the GPU operator) cordoned the \
              Node but does not uncordon it",
    stages: [Ready],
    reads: [DaemonSets, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::Cordoned {
        return None;
    }
    let (node, cordon) = case.node.and_then(|n| Some((n, cordon(n)?)))?;
    let ends = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
    let left = match cordon.by {
        Cordoner::TerminationHandler => return of_handler(case, node.name(), cordon).into(),
        // It waits for pods that end, as it should, and goes on by itself.
        Cordoner::Kured if case.cluster.missing(Input::Pods).is_some() || case.pods().any(ends) => {
            return None;
        }
        by => left(by),
    };
    finding(case, node, &cordon, &left).into()
}

/// Why a cordon still exists.
struct Left {
    who: &'static str,
    why: &'static str,
    because: &'static str,
    fix: &'static str,
    look: (&'static str, &'static str),
}

fn left(by: Cordoner) -> Left {
    match by {
        Cordoner::Kured => Left {
            who: "kured",
            why: "has not uncordoned it: its drain does not end, the reboot did not come, or it lost the lock that \
                  shows whether the cordon is its own",
            because: "kured uncordons a Node after the reboot only if it still holds the lock then",
            fix: "See what kured logs on the node. Uncordon the node if no reboot is under way. Uncordoning disrupts \
                  no pod.",
            look: ("See what kured logs", "kubectl logs -n kube-system -l app.kubernetes.io/name=kured --tail=-1"),
        },
        Cordoner::DriverUpgrade => Left {
            who: "the GPU operator",
            why: "leaves it cordoned because the upgrade of its driver has failed",
            because: "the operator does not retry: you have to check and start the upgrade again",
            fix: "Find out why the driver's pod or the drain failed on the node, and fix that. Then set the label to \
                  upgrade-required, so that the operator tries again. Its upgrade may drain the node.",
            look: ("See the pods of the operator", "kubectl get pods -A -o wide | grep nvidia"),
        },
        Cordoner::Autoscaler | Cordoner::TerminationHandler => Left {
            who: "cluster-autoscaler",
            why: "has given up its removal (its taint is gone), but did not uncordon it",
            because: "versions that only remove their taint leave the cordon of --cordon-node-before-terminating",
            fix: "Uncordon the node, which disrupts no pod. Then upgrade cluster-autoscaler, or remove its flag \
                  --cordon-node-before-terminating.",
            look: (
                "See its version and flags",
                "kubectl get deployments -A -o wide -l app.kubernetes.io/name=aws-cluster-autoscaler",
            ),
        },
    }
}

fn finding(case: &Case, node: &Node, cordon: &Cordon, left: &Left) -> Finding {
    let (name, Left { who, why, because, fix, look }) = (node.name(), left);
    let summary = format!(
        "Node {name} is Ready and unschedulable: {who} cordoned it at {}, and {why}.",
        timestamp(case.wait.since)
    );
    let evidence = Evidence::new(format!("Node/{name}"), cordon.field, cordon.says.clone(), *because);
    Finding::new(Confidence::Certain, summary, evidence)
        .blaming(Blame::object("v1", "Node", name).field(cordon.field))
        .fix(*fix)
        .inspect(look.0, look.1.to_owned())
        .step(
            Risk::LowRisk,
            "Uncordon the node, so that pods can run there again",
            Some(format!("kubectl uncordon {name}")),
        )
}

fn of_handler(case: &Case, name: &str, cordon: Cordon) -> Finding {
    let handler = case.cluster.daemon_sets().find(|set| termination_handler::is_daemon_set(&set.metadata.name));
    let rebalance = handler.filter(|set| set.env("ENABLE_REBALANCE_MONITORING") == Some("true"));
    let why = if rebalance.is_some() { " (it acts on rebalance recommendations alone)" } else { "" };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is Ready and unschedulable: aws-node-termination-handler cordoned it for an interruption{why} \
             that has not come since {}, but does not uncordon it.",
            case.since()
        ),
        Evidence::new(
            format!("Node/{name}"),
            cordon.field,
            cordon.says,
            "the handler cordons a Node before its interruption, and expects the instance to end",
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
                        "EC2 recommends to leave an instance long before it interrupts it, and often does not \
                         interrupt it",
                    ))
                    .fix(
                        "Turn off rebalance monitoring of aws-node-termination-handler, or remove the handler if \
                         Karpenter handles interruptions. Then uncordon the node. None of this disrupts pods.",
                    )
                    .change(
                        "Turn off rebalance monitoring. Keep it off in the chart's values",
                        format!(
                            "kubectl set env -n {namespace} daemonset/{} ENABLE_REBALANCE_MONITORING=false",
                            set.metadata.name
                        ),
                    )
            } else {
                finding
                    .fix(
                        "Uncordon the node, which disrupts no pod. Remove aws-node-termination-handler if Karpenter \
                         handles interruptions.",
                    )
                    .inspect(
                        "See what the handler reacts to",
                        format!("kubectl describe daemonset -n {namespace} {}", set.metadata.name),
                    )
            }
        }
        None => finding.blaming(Blame::object("v1", "Node", name).field(cordon.field)).fix(
            "Uncordon the node, which disrupts no pod. If aws-node-termination-handler runs, check what it reacts to.",
        ),
    };
    let finding = finding.step(
        Risk::LowRisk,
        "Uncordon the node, so that pods can run there again",
        Some(format!("kubectl uncordon {name}")),
    );
    match cordon.taint.as_deref().and_then(|taint| taint.split(['=', ':']).next()) {
        Some(key) => {
            finding.step(Risk::LowRisk, "Remove the handler's taint", Some(format!("kubectl taint node {name} {key}-")))
        }
        None => finding,
    }
}
