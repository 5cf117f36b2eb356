//! The kubelet of a Ready Node rejects the pods that are scheduled there.

use crate::case::rejected_pods::{RejectedPods, rejected_pods};
use crate::explain::{commands, repair};
use crate::rules::prelude::*;
use readers::source_text::mask;

rule! {
    cause: KubeletRejectsPods,
    summary: "The Node is Ready, but its kubelet rejects each pod that is scheduled there: a device is lost, or its \
              topology policy cannot be met",
    stages: [Ready],
    reads: [NodeClasses, Pods],
    versions: "all",
}

/// The words of device plugins for hardware that is gone: NVML's for `NVML_ERROR_GPU_IS_LOST`, the driver's for Xid 79.
const LOST: [&str; 2] = ["GPU is lost", "fallen off the bus"];

/// The names of the policy in user data: a KubeletConfiguration, a flag, Bottlerocket's settings.
const POLICY: [&str; 2] = ["topologyManagerPolicy", "topology-manager-policy"];

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::PodsRejected)?;
    let found = rejected_pods(case.cluster, node, case.now)?;
    let RejectedPods { last, count, resource, .. } = found;
    let (name, reason) = (node.name(), &last.status.reason);
    let said = mask(last.status.message.trim_start_matches("Pod was rejected: "));
    let what = resource.map_or_else(|| "pods".to_owned(), |resource| format!("pods that request {resource}"));
    let topology = reason == "TopologyAffinityError";
    let lost = LOST.iter().any(|lost| said.contains(lost));
    let why = if topology {
        "they request devices on more than one of the NUMA nodes, which the kubelet's topologyManagerPolicy does not \
         allow"
            .to_owned()
    } else if lost {
        "a device of the node is lost, but the scheduler still counts it".to_owned()
    } else {
        "the component that allocates devices there fails".to_owned()
    };
    // An image, or a node group's launch template, may set the policy as well.
    let user_data = case.user_data_naming(&POLICY).filter(|_| topology);
    let confidence = if user_data.is_some() { Confidence::Certain } else { Confidence::Likely };
    let finding = Finding::new(
        confidence,
        format!(
            "Node {name} is Ready, but since {} its kubelet has rejected {what}, {count} of them: {why} ({reason}: \
             {said}).",
            case.since()
        ),
        case.wait.evidence.clone().figures(format!("{count} pods, and no accepted pod since the first")),
    );
    if topology {
        let finding = finding
            .fix(
                "Set topologyManagerPolicy best-effort or restricted in the kubelet's configuration (NodeConfig in the \
                 user data), and replace the nodes afterwards. Or change the pods to request only what one NUMA node \
                 has: the scheduler does not know about NUMA nodes.",
            )
            .inspect("See what the Node offers", format!("kubectl describe node {name}"));
        return match user_data.zip(case.class()) {
            Some((blame, class)) => finding.blaming(blame).change("Set the policy", commands::edit(class)),
            None => finding.blaming(Blame::object("v1", "Node", name)),
        }
        .into();
    }
    let finding = finding
        .blaming(Blame::object("v1", "Node", name))
        .fix(
            "Replace the node: at best, a reboot brings a lost device back. If a new node has the same fault, check \
             the device plugin.",
        )
        .inspect(
            "See what the device plugin logs there",
            format!("kubectl get pods -A --field-selector spec.nodeName={name}"),
        )
        .step(Risk::LowRisk, "Keep pods away meanwhile", Some(format!("kubectl cordon {name}")));
    repair::or_replace(case, finding).into()
}
