//! What makes the devices of a Ready Node known does not work there, and pods wait for them.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::device_missing::{DeviceGap, DeviceMissing, device_missing};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::objects::Pod;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::agent_chain::of_pod;
use crate::rules::shared::logged::{self, excerpt};
use crate::upstream::device_plugins::{MIG_CONFIG, MIG_SLICE, MIG_STATE, offers};
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "DevicePluginFails",
    summary: "The Node is Ready without the devices that pods wait for: its device plugin, or its driver, does not work there",
    stages: &[Stage::Ready],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodePools,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::DaemonSets,
        Input::Logs,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/DevicePluginFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|_| case.wait.symptom == Symptom::DeviceMissing) else { return Opinion::Silent };
    let Some(found) = device_missing(case.cluster, node) else { return Opinion::Silent };
    let DeviceMissing { why, waiting, resource, .. } = found;
    let name = node.name();
    let waits = format!("{}/{}", waiting.metadata.namespace.as_deref().unwrap_or_default(), waiting.metadata.name);
    let head = format!("Node {name} is Ready and offers no {resource}, for which pod {waits} waits");
    if resource.starts_with(MIG_SLICE) && node.metadata.label(MIG_STATE) == Some("failed") {
        return uncut(case, &head).into();
    }
    let agent = match why {
        DeviceGap::Agent(agent) => agent,
        DeviceGap::Uncut => return Opinion::Silent,
        DeviceGap::Blind(plugin) => return blind(case, &head, plugin).into(),
        DeviceGap::NoPlugin => return without_plugin(case, &head, resource).into(),
        DeviceGap::Named(own) => return renamed(case, &head, (resource, own), &waits).into(),
    };
    let obstacle = of_pod(case, node, agent);
    let summary = format!("{head}: {}.", obstacle.why.trim_end_matches('.'));
    let symptom = Link::new(format!("Node/{name}"), format!("it offers no {resource}"));
    obstacle.found(case, summary, case.wait.evidence.clone(), symptom).into()
}

/// Nothing in the cluster makes such devices known.
fn without_plugin(case: &Case, head: &str, resource: &str) -> Finding {
    let node = case.node.map_or("NODE", |node| node.name());
    let (whose, name, see) = if resource.starts_with("nvidia.com/") {
        ("NVIDIA", "nvidia-device-plugin", "its Helm chart, the GPU operator")
    } else {
        ("Neuron", "neuron-device-plugin", "the Neuron Helm chart")
    };
    Finding::new(
        Confidence::Likely,
        format!("{head}: no DaemonSet of the {whose} device plugin is in the cluster, and nothing else makes the devices of a machine known."),
        case.wait.evidence.clone(),
    )
    .blaming(Blame::object("apps/v1", "DaemonSet", name).namespace("kube-system"))
    .fix(format!("Install the {whose} device plugin ({see}), or use an image or add-on that brings it; with Auto Mode it is part of the machine."))
    .step(Risk::Inspect, "See what the Node offers", Some(format!("kubectl get node {node} -o jsonpath='{{.status.allocatable}}'")))
    .unknown("Is there a device plugin under another name?", "kubectl get daemonsets -A")
}

/// The plugin waits for devices that it does not see: it gets the driver's library from the runtime of the machine.
/// Source: NVIDIA/k8s-device-plugin v0.13.0 cmd/nvidia-device-plugin/main.go ("No devices found. Waiting indefinitely.").
fn blind(case: &Case, head: &str, plugin: &Pod) -> Finding {
    let (pod, namespace) = (&plugin.metadata.name, plugin.metadata.namespace.as_deref().unwrap_or_default());
    let told = logged::of_kind(case, Trouble::DeviceFails);
    let said = told.map_or_else(String::new, |root| format!(" ({})", excerpt(&root.fact.last.text)));
    let finding = Finding::new(
        Confidence::Likely,
        format!("{head}: pod {pod} of its device plugin is Ready and finds no device{said}. The image has no driver, or one that does not work there, or the default runtime of its containerd is not that of the driver (NVIDIA's container toolkit), so that the plugin does not see the driver's library."),
        case.wait.evidence.clone(),
    )
    .with(Evidence::new(format!("Pod/{pod}"), "status.conditions", "Ready", "a plugin that finds no device waits, and is Ready"))
    // What selects the image of a node group's machines is no object here.
    .blaming(case.class_field("spec.amiSelectorTerms"))
    .fix("Use an image of the accelerated kind, or have user data set the runtime up after the bootstrap has written containerd's configuration (nvidia-ctk runtime configure --set-as-default, then restart containerd); give the plugin's pods a runtimeClassName where the runtime is not the default.")
    .step(
        Risk::Inspect,
        "See what the plugin says",
        Some(format!("kubectl logs -n {namespace} {pod} --all-containers --tail=50")),
    );
    told.into_iter().fold(finding, |finding, root| finding.with(logged::told(root.fact, "it is what the plugin says")))
}

/// The devices are there, and shared under their own name.
/// Source: NVIDIA/k8s-device-plugin v0.17 README, "With CUDA Time-Slicing": sharing.timeSlicing.renameByDefault.
fn renamed(case: &Case, head: &str, (resource, own): (&str, &str), waits: &str) -> Finding {
    let plugin = case.pods().find(|pod| pod.daemon_set().is_some_and(|set| offers(set, own)));
    let finding = Finding::new(
        Confidence::Likely,
        format!("{head}: it offers {own}. The device plugin gives shared devices the name {resource} only with sharing.timeSlicing.renameByDefault: true (or mps) in its configuration, and that is not in effect."),
        case.wait.evidence.clone(),
    )
    .fix(format!("Put renameByDefault: true under sharing.timeSlicing of the device plugin's configuration (a field that stands elsewhere is ignored), or let pod {waits} ask for {own}."));
    match plugin.and_then(|pod| Some((pod, pod.daemon_set()?))) {
        Some((pod, set)) => {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            finding.blaming(Blame::object("apps/v1", "DaemonSet", set).namespace(namespace)).step(
                Risk::Inspect,
                "See the configuration that it took",
                Some(format!("kubectl logs -n {namespace} {} --all-containers --tail=100", pod.metadata.name)),
            )
        }
        None => finding.blaming(case.node.map(|node| Blame::object("v1", "Node", node.name()))),
    }
}

/// The MIG manager could not cut the GPUs as it was told; why, its log says.
/// Sources: NVIDIA/mig-parted deployments/container/reconfigure-mig.sh; NVIDIA's MIG User Guide, "Enable MIG Mode": inside
/// a virtual machine the GPUs cannot be reset, so the machine is restarted.
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
        format!("{head}: its GPUs could not be cut as MIG configuration {config} asks ({MIG_STATE} is failed)."),
        Evidence::new(object, format!("metadata.labels['{MIG_STATE}']"), "failed", "the MIG manager says how it went"),
    )
    .with(case.wait.evidence.clone())
    .blaming(Blame::object("v1", "Node", node).field(format!("metadata.labels['{MIG_CONFIG}']")))
    .fix("Read the MIG manager's log. Where the mode change waits for a reset of the GPUs, which a virtual machine cannot do, restart the machine, or let the MIG manager do so (WITH_REBOOT=true); where no such configuration exists for this GPU, name one that does.")
    .step(
        Risk::Inspect,
        "See how they are to be cut, and how it went",
        Some(format!("kubectl get node {node} -o jsonpath='{{.metadata.labels}}'")),
    )
    .step(Risk::Inspect, "See why", see)
}
