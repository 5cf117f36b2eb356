//! The kubelet no longer reports, or never did.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{Condition, Event};
use crate::rules::Rule;
use crate::rules::shared::instance_questions::ask_the_instance;
use crate::rules::shared::repair;
use chrono::TimeDelta;

pub static RULE: Rule = Rule {
    cause: "KubeletStopped",
    summary: "The kubelet stopped posting the Node's status, or never posted it",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Events, Input::Deployments, Input::AwsObservations],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/KubeletStopped.md"),
    check,
};

/// Between the kernel's last kill and the node controller's verdict: a machine that thrashes may renew its Lease for
/// some time yet.
const AFTER_OOM: TimeDelta = TimeDelta::minutes(15);

/// The kernel killed processes for want of memory right before the kubelet fell silent.
/// Source: kubernetes v1.36.3 `pkg/kubelet/oom/oom_watcher_linux.go`.
fn out_of_memory<'w>(case: &Case<'w>, ready: &Condition) -> Option<&'w Event> {
    let silent = ready.last_transition_time?;
    let before = |e: &&Event| e.last_seen().is_some_and(|at| at <= silent && silent - at <= AFTER_OOM);
    case.events().filter(|e| e.reason == "SystemOOM").find(before)
}

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let Some(ready) = node.condition("Ready") else { return Opinion::Silent };
    // Source: kubernetes v1.36.3 pkg/controller/nodelifecycle/node_lifecycle_controller.go `tryUpdateNodeHealth`.
    let what = match ready.reason.as_str() {
        "NodeStatusUnknown" => format!("has posted no status since {}", case.since()),
        "NodeStatusNeverUpdated" => "has never posted a status".to_owned(),
        _ if ready.is_true() || ready.is_false() => {
            return Opinion::ruled_out(node, format!("the kubelet of Node {} posts its status", node.name()));
        }
        _ => return Opinion::Silent,
    };
    let oom = out_of_memory(case, ready);
    let why = match oom {
        Some(event) => format!("right before, the machine ran out of memory ({}).", event.said().trim_end_matches('.')),
        None => "the instance is gone, hangs, or has lost the API server.".to_owned(),
    };
    // k8s.io/cloud-provider v0.36.3 controllers/nodelifecycle: where the search by name finds nothing, AWS's provider
    // returns an error, and a Node is only deleted without one (kubernetes/cloud-provider-aws#1471,
    // kubernetes/kubernetes#139301).
    let orphan = node.spec.provider_id.is_empty();
    let tail = if orphan {
        " It has no providerID, without which the cloud controller does not delete it when its instance is gone."
    } else {
        ""
    };
    let summary = format!("The kubelet of Node {} {what}: {why}{tail}", node.name());
    let finding = Finding::new(
        Confidence::Likely,
        summary,
        Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "neither status nor Lease has been renewed, so the node controller speaks for the kubelet",
        ),
    )
    .blaming(Blame::object("v1", "Node", node.name()));
    let finding = if orphan { without_provider_id(node.name(), finding) } else { finding };
    let finding = match oom {
        Some(event) => finding
            .with(Evidence::new(
                format!("Event/{}", event.metadata.name),
                "reason",
                "SystemOOM",
                "the kernel killed processes, and what it spared may be stuck",
            )
            .figures(format!("{} times", event.times())))
            .fix("Reserve memory for the system (kubeReserved, systemReserved, evictionHard) and give the pods memory limits; then replace the instance."),
        None if orphan => finding.fix("Find out whether an instance of that private DNS name still runs. Delete the Node where none does."),
        None => finding.fix("Look at the instance: out of memory, disk or network are the usual reasons. Replace it if it does not come back."),
    };
    let finding = finding.step(
        Risk::Inspect,
        "See the Node's conditions and events",
        Some(format!("kubectl describe node {}", node.name())),
    );
    repair::who_replaces(case, ask_the_instance(case, repair::or_replace(case, finding))).into()
}

fn without_provider_id(name: &str, finding: Finding) -> Finding {
    let because = "the cloud controller knows an instance by this id, and cannot tell that one without it is gone";
    finding
        .with(Evidence::new(format!("Node/{name}"), "spec.providerID", "empty", because))
        .step(
            Risk::Inspect,
            "See whether the instance still runs",
            Some(format!("aws ec2 describe-instances --filters Name=private-dns-name,Values={name} --query 'Reservations[].Instances[].[InstanceId,State.Name]'")),
        )
        .step(Risk::Destructive, "Delete the Node where no such instance runs", Some(format!("kubectl delete node {name}")))
}
