//! The kubelet has a newer minor version than the API server, and starts no container.

use crate::explain::commands;
use crate::facts::kubelet_skew;
use crate::facts::network_plugin;
use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;

rule! {
    cause: KubeletNewerThanApiServer,
    summary: "The kubelet is newer than the API server, so it cannot list Services there and starts no container",
    stages: [Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, DaemonSets],
    versions: "kubelets of 1.31 and later on API servers of 1.30 and before",
}

/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_pods.go `getServiceEnvVarMap`.
const NO_SERVICES: &str = "services have not yet been read at least once";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let waits =
        |pod: &Pod| pod.trouble().filter(|(_, said)| said.contains(NO_SERVICES)).map(|(c, s)| (c.to_owned(), s));
    let (pod, (container, said)) = case.pods().find_map(|pod| Some((pod, waits(pod)?)))?;
    // A kubelet that has just started says so too.
    let skew = kubelet_skew::ahead_of_api_server(case, node)?;
    let (blame, fix) = skew.blame_and_fix(case, node);
    let confidence = if skew.proven && case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    let name = &pod.metadata.name;
    let says = format!("container {container}: {said}");
    let object = format!("Node/{}", node.name());
    let symptom = vpc_cni::not_ready(node)
        .map_or_else(|| Link::new(&object, "it starts no container"), |ready| network_plugin::symptom(node, ready));
    let version = &node.status.node_info.kubelet_version;
    let mut finding = Finding::new(
        confidence,
        format!("Node {} starts no container: {} ({name}: {said}).", node.name(), skew.why),
        Evidence::new(format!("Node/{}", node.name()), "status.nodeInfo.kubeletVersion", version.as_str(), skew.seen),
    )
    .with(Evidence::new(
        format!("Pod/{name}"),
        "status.containerStatuses",
        says.clone(),
        "the kubelet creates no container before it has read the Services",
    ))
    .linked([
        symptom,
        Link::new(format!("Pod/{name}"), says),
        Link::new(object, format!("its kubelet is {version}")),
    ]);
    if let Some(ami) = kubelet_skew::image(case) {
        finding = finding.linked([Link::new(&blame.object, format!("it selects {}", ami.name))]);
    }
    finding = finding.blaming(blame).fix(fix).inspect("See the control plane's version", "kubectl version".to_owned());
    match case.class() {
        Some(class) => finding.change("Select images of that version", commands::edit(class)).into(),
        None => finding
            .inspect("See the kubelets' versions", "kubectl get nodes -o wide".to_owned())
            .inspect("See this Node", format!("kubectl describe node {}", node.name()))
            .into(),
    }
}
