//! A DRA driver that the node's pods request has published nothing for the Node.

use crate::explain::agent_chain::{of_pod, refused, without_pod};
use crate::facts::placement;
use crate::rules::prelude::*;

rule! {
    cause: DraDriverSilent,
    summary: "A DRA driver that pods requested has published no complete pool of resources for the Node",
    stages: [Initialize],
    reads: [Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "Karpenter 1.14 and later with IGNORE_DRA_REQUESTS=false",
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, claim) = (case.node.filter(|n| n.is_ready())?, case.claim?);
    // Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go (v1.14.1).
    let waits = claim.condition("Initialized").filter(|c| c.reason == "DRADriverPoolsNotPublished")?;
    let driver = waits.message.split('"').nth(1).unwrap_or("unknown");
    let plugin = case.pods().filter(|p| p.daemon_set().is_some_and(|set| is_plugin(set, driver)));
    let plugin = plugin.min_by_key(|p| (p.is_ready(), p.trouble().is_none()));
    let set = || {
        let mut sets = case.cluster.daemon_sets().filter(|set| is_plugin(&set.metadata.name, driver)).peekable();
        let first = *sets.peek()?;
        let is_refused = |name: &str| refused(case, node, name, None).is_some();
        // One DaemonSet for each kind of Node: the reason matters only if all of them are kept away.
        let away = sets.all(|set| placement::refusal(set, node).is_some() || is_refused(&set.metadata.name));
        away.then_some(first)
    };
    let explanation = match plugin {
        Some(pod) if pod.is_ready() => None,
        Some(pod) => Some(of_pod(case, node, pod)),
        None => set().map(|set| without_pod(case, node, &set.metadata.name)),
    };
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
    let symptom = Link::new(format!("Node/{}", node.name()), waits.message.clone());
    let finding = match explanation {
        Some(explanation) => {
            let summary = format!("{head}: {}.", explanation.why.trim_end_matches('.'));
            explanation.found(case, summary, evidence, symptom)
        }
        None => Finding::new(Confidence::Likely, format!("{head}."), evidence)
            .blaming(Blame::object("v1", "Node", node.name()))
            .fix(
                "Get the driver's kubelet plugin Ready on the Node. It must tolerate the Node's taints and select \
                 labels that the Node has, and the image must contain the device's driver.",
            ),
    };
    finding
        .inspect("See what is published", format!("kubectl get resourceslices -o wide | grep {}", node.name()))
        .unknown(
            "Does the driver's kubelet plugin run there?",
            format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name()),
        )
        .into()
}

/// Whether a DaemonSet is the kubelet plugin of `driver`: the names show the purpose and the vendor.
/// Sources: charts of nvidia-dra-driver-gpu (nvidia-dra-driver-gpu-kubelet-plugin, gpu.nvidia.com), `DraNet` (dranet,
/// dra.net) and AWS Neuron (neuron-dra-driver-kubelet-plugin, neuron.aws.com).
fn is_plugin(set: &str, driver: &str) -> bool {
    if set == driver.replace('.', "") {
        return true;
    }
    let words = || set.split('-');
    // "gpu" and "aws" name no vendor's driver.
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
