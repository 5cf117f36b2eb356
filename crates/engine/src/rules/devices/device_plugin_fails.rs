//! Pods wait for devices of a Ready Node, but the component that reports the devices does not work there.

use crate::case::device_missing::{DeviceGap, DeviceMissing, device_missing};
use crate::explain::agent_chain::of_pod;
use crate::explain::driver_unit;
use crate::explain::logged::{self, excerpt};
use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::device_plugins::{MIG_CONFIG, MIG_SLICE, MIG_STATE, offers};
use logs::fact::Trouble;

rule! {
    cause: DevicePluginFails,
    summary: "The Node is Ready without the devices that pods wait for: its device plugin or its driver does not work",
    stages: [Ready],
    reads: [Nodes, NodeClaims, NodePools, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::DeviceMissing)?;
    let found = device_missing(case.cluster, node)?;
    let DeviceMissing { why, waiting, resource, .. } = found;
    let name = node.name();
    let waits = format!("{}/{}", waiting.metadata.namespace.as_deref().unwrap_or_default(), waiting.metadata.name);
    let head = format!("Node {name} is Ready but offers no {resource}, which pod {waits} waits for");
    if resource.starts_with(MIG_SLICE) && node.metadata.label(MIG_STATE) == Some("failed") {
        return uncut(case, &head).into();
    }
    let agent = match why {
        DeviceGap::Agent(agent) => agent,
        DeviceGap::Uncut => return None,
        DeviceGap::Blind(plugin) => return blind(case, &head, resource, plugin).into(),
        DeviceGap::NoPlugin => return without_plugin(case, &head, resource).into(),
        DeviceGap::Named(own) => return renamed(case, &head, (resource, own), &waits).into(),
    };
    let explanation = of_pod(case, node, agent);
    let summary = format!("{head}: {}.", explanation.why.trim_end_matches('.'));
    let symptom = Link::new(format!("Node/{name}"), format!("it offers no {resource}"));
    explanation.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// Nothing in the cluster reports such devices to the kubelet.
fn without_plugin(case: &Case, head: &str, resource: &str) -> Finding {
    let node = case.node.map_or("NODE", |node| node.name());
    let (whose, name, see) = if resource.starts_with("nvidia.com/") {
        ("NVIDIA", "nvidia-device-plugin", "its Helm chart, the GPU operator")
    } else {
        ("Neuron", "neuron-device-plugin", "the Neuron Helm chart")
    };
    Finding::new(
        Confidence::Likely,
        format!(
            "{head}: the cluster has no DaemonSet of the {whose} device plugin, and nothing else reports the devices \
             of a node."
        ),
        case.wait.evidence.clone(),
    )
    .blaming(Blame::object("apps/v1", "DaemonSet", name).namespace("kube-system"))
    .fix(format!(
        "Install the {whose} device plugin ({see}), or use an image or add-on that contains it. With Auto Mode, it is \
         part of the node."
    ))
    .inspect("See what the Node offers", format!("kubectl get node {node} -o jsonpath='{{.status.allocatable}}'"))
    .unknown("Is there a device plugin under another name?", "kubectl get daemonsets -A")
}

/// The plugin waits for devices that it does not see: it gets the driver's library from the node's container runtime.
/// Source: NVIDIA/k8s-device-plugin v0.13.0 cmd/nvidia-device-plugin/main.go ("No devices found. Waiting
/// indefinitely.").
fn blind(case: &Case, head: &str, resource: &str, plugin: &Pod) -> Finding {
    let (pod, namespace) = (&plugin.metadata.name, plugin.metadata.namespace.as_deref().unwrap_or_default());
    let told = logged::of_kind(case, Trouble::DeviceFails);
    let said = told.map_or_else(String::new, |root| format!(" ({})", excerpt(&root.fact.last.text)));
    // Only the plugin of NVIDIA gets its driver's library from the runtime. That of Neuron opens the devices itself.
    let unit = driver_unit::failed(case, resource);
    let (why, fix) = if resource.starts_with("nvidia.com/") {
        (
            "Either the image has no working driver, or the default runtime of its containerd is not the driver's \
             (NVIDIA's container toolkit), so the plugin does not see the driver's library.",
            "Use an accelerated image. Or configure the runtime in user data after the bootstrap has written \
             containerd's configuration (nvidia-ctk runtime configure --set-as-default, then restart containerd). If \
             the runtime is not the default, give the plugin's pods a runtimeClassName.",
        )
    } else {
        (
            "The image has no working driver for these devices.",
            "Use an accelerated image: the driver must fit the kernel and the devices of the instance type.",
        )
    };
    let why = unit.as_ref().map_or_else(|| why.to_owned(), |unit| format!("{}.", unit.says));
    let finding = Finding::new(
        Confidence::Likely,
        format!("{head}: pod {pod} of its device plugin is Ready but finds no device{said}. {why}"),
        case.wait.evidence.clone(),
    )
    .with(Evidence::new(
        format!("Pod/{pod}"),
        "status.conditions",
        "Ready",
        "a plugin that finds no device waits, and is Ready",
    ))
    // No Kubernetes object selects the image of a node group's nodes.
    .blaming(case.class_field("spec.amiSelectorTerms"))
    .fix(fix)
    .inspect("See what the plugin logs", format!("kubectl logs -n {namespace} {pod} --all-containers --tail=50"));
    let finding =
        told.into_iter().fold(finding, |finding, root| finding.with(logged::told(root.fact, "the plugin logs it")));
    match unit {
        Some(unit) => finding.with(unit.evidence).fix(driver_unit::FIX),
        None => finding,
    }
}

/// The devices exist, and the plugin shares them under their own name.
/// Source: NVIDIA/k8s-device-plugin v0.17 README, "With CUDA Time-Slicing": sharing.timeSlicing.renameByDefault.
fn renamed(case: &Case, head: &str, (resource, own): (&str, &str), waits: &str) -> Finding {
    let plugin = case.pods().find(|pod| pod.daemon_set().is_some_and(|set| offers(set, own)));
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "{head}: it offers {own}. The device plugin renames shared devices to {resource} only with \
             sharing.timeSlicing.renameByDefault: true (or mps) in its configuration, and that setting is not in \
             effect."
        ),
        case.wait.evidence.clone(),
    )
    .fix(format!(
        "Set renameByDefault: true under sharing.timeSlicing of the device plugin's configuration (the plugin ignores \
         it in any other place). Or change pod {waits} to request {own}."
    ));
    match plugin.and_then(|pod| Some((pod, pod.daemon_set()?))) {
        Some((pod, set)) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            finding.blaming(Blame::object("apps/v1", "DaemonSet", set).namespace(namespace)).inspect(
                "See which configuration it loaded",
                format!("kubectl logs -n {namespace} {} --all-containers --tail=100", pod.metadata.name),
            )
        }
        None => finding.blaming(case.node.map(|node| Blame::object("v1", "Node", node.name()))),
    }
}

/// The MIG manager could not split the GPUs as configured. Its log says why.
/// Sources: NVIDIA/mig-parted deployments/container/reconfigure-mig.sh; NVIDIA's MIG User Guide, "Enable MIG Mode":
/// inside a virtual machine the GPUs cannot be reset, so the machine is restarted.
fn uncut(case: &Case, head: &str) -> Finding {
    let node = case.node.map_or("NODE", |node| node.name());
    let config = case.node.and_then(|node| node.metadata.label(MIG_CONFIG)).unwrap_or("none");
    let object = format!("Node/{node}");
    let manager = case.pods().find(|pod| pod.daemon_set().is_some_and(|set| set.contains("mig-manager")));
    let see = manager.map(|pod| {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        format!("kubectl logs -n {namespace} {} --all-containers --tail=50", pod.metadata.name)
    });
    Finding::new(
        Confidence::Likely,
        format!(
            "{head}: the MIG manager could not split its GPUs into MIG configuration {config} ({MIG_STATE} is failed)."
        ),
        Evidence::new(
            object,
            format!("metadata.labels['{MIG_STATE}']"),
            "failed",
            "the MIG manager reports the result",
        ),
    )
    .with(case.wait.evidence.clone())
    .blaming(Blame::object("v1", "Node", node).field(format!("metadata.labels['{MIG_CONFIG}']")))
    .fix(
        "Read the MIG manager's log. If the mode change waits for a reset of the GPUs, which a virtual machine cannot \
         do, restart the node, or let the MIG manager restart it (WITH_REBOOT=true). If this GPU has no such \
         configuration, name one that it has.",
    )
    .inspect(
        "See the wanted configuration and its result",
        format!("kubectl get node {node} -o jsonpath='{{.metadata.labels}}'"),
    )
    .inspect("See why", see)
}
