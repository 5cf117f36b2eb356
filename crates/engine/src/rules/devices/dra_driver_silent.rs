//! A DRA driver that the machine's pods ask for has published nothing for the Node.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::placement;

pub static RULE: Rule = Rule {
    cause: "DraDriverSilent",
    summary: "A DRA driver that pods asked for has published no complete pool of resources for the Node",
    stages: &[Stage::Initialize],
    reads: &[Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "Karpenter 1.14 and later with IGNORE_DRA_REQUESTS=false",
    page: include_str!("../../../pages/DraDriverSilent.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(node), Some(claim)) = (case.node.filter(|n| n.is_ready()), case.claim) else { return Opinion::Silent };
    // Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go (v1.14.1).
    let Some(waits) = claim.condition("Initialized").filter(|c| c.reason == "DRADriverPoolsNotPublished") else {
        return Opinion::Silent;
    };
    let driver = waits.message.split('"').nth(1).unwrap_or("unknown");
    let plugin =
        case.pods().filter(|p| !p.is_ready()).find(|p| p.daemon_set().is_some_and(|set| is_plugin(set, driver)));
    let runs = case.pods().any(|p| p.daemon_set().is_some_and(|set| is_plugin(set, driver)));
    let away = || {
        let mut sets = case.cluster.daemon_sets().filter(|set| is_plugin(&set.metadata.name, driver)).peekable();
        let first = *sets.peek()?;
        // One for each kind of Node: only where all are kept away does it matter why.
        sets.all(|set| placement::refusal(set, node).is_some())
            .then(|| Some((first, placement::refusal(first, node)?)))?
    };
    let trouble = plugin.and_then(|p| Some((p, p.daemon_set()?, p.trouble()?)));
    let evidence = Evidence::new(
        case.subject(),
        r#"status.conditions[?(@.type=="Initialized")]"#,
        waits.shown(),
        "Karpenter waits until the driver has published every slice of its pool for the Node",
    );
    let head = format!(
        "DRA driver {driver} has published no complete pool of resources for Node {} since {}",
        node.name(),
        case.since()
    );
    let finding = match (trouble, if runs { None } else { away() }) {
        (Some((pod, set, (container, why))), _) => Finding::new(
            if case.is_overdue() { Confidence::Certain } else { Confidence::Likely },
            format!("{head}: DaemonSet {set} fails there (container {container}: {why})."),
            evidence,
        )
        .blaming(
            Blame::object("v1", "Pod", &pod.metadata.name)
                .namespace(pod.metadata.namespace.as_deref().unwrap_or_default()),
        ),
        (None, Some((set, refusal))) => Finding::new(
            if case.is_overdue() || !refusal.may_change { Confidence::Certain } else { Confidence::Likely },
            format!("{head}: {}.", refusal.why),
            evidence,
        )
        .blaming(
            Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
                .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
                .field(refusal.field),
        ),
        (None, None) => Finding::new(Confidence::Likely, format!("{head}."), evidence).blaming(Blame::object(
            "v1",
            "Node",
            node.name(),
        )),
    };
    finding
        .fix("Get the driver's kubelet plugin Ready on the Node: it must tolerate the Node's taints and select labels that the Node has, and the image must have the device's driver.")
        .step(Risk::Inspect, "See what is published", Some(format!("kubectl get resourceslices -o wide | grep {}", node.name())))
        .unknown("Does the driver's kubelet plugin run there?", format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name()))
        .into()
}

/// Whether a DaemonSet is the kubelet plugin of `driver`: their names say what they are and whose.
///
/// Sources: charts of nvidia-dra-driver-gpu (nvidia-dra-driver-gpu-kubelet-plugin, gpu.nvidia.com), `DraNet` (dranet,
/// dra.net) and AWS Neuron (neuron-dra-driver-kubelet-plugin, neuron.aws.com).
fn is_plugin(set: &str, driver: &str) -> bool {
    if set == driver.replace('.', "") {
        return true;
    }
    let words = || set.split('-');
    // "gpu" and "aws" are nobody's name.
    let mut vendors = driver.split('.').rev().skip(1).filter(|part| !matches!(*part, "gpu" | "aws" | "amazonaws"));
    words().any(|word| word == "dra") && vendors.any(|vendor| words().any(|word| word == vendor))
}

#[cfg(test)]
mod tests {
    use super::is_plugin;

    #[test]
    fn a_plugin_is_known_by_what_it_is_and_whose() {
        assert!(is_plugin("nvidia-dra-driver-gpu-kubelet-plugin", "gpu.nvidia.com"));
        assert!(is_plugin("nvidia-dra-driver-gpu-kubelet-plugin", "compute-domain.nvidia.com"));
        assert!(is_plugin("neuron-dra-driver-kubelet-plugin", "neuron.aws.com"));
        assert!(is_plugin("dranet", "dra.net"));
        assert!(!is_plugin("neuron-dra-driver-kubelet-plugin", "gpu.nvidia.com"));
        assert!(!is_plugin("nvidia-device-plugin-daemonset", "gpu.nvidia.com"));
        assert!(!is_plugin("dragonfly-nvidia-dfdaemon", "gpu.nvidia.com"));
    }
}
