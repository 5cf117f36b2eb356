//! Windows pods get no addresses because the VPC resource controller's Windows support is off.

use crate::facts::requested_resources::{is_zero, missing};
use crate::objects::Node;
use crate::rules::prelude::*;
use crate::upstream::node_events::{Sandbox, refused_sandbox};

rule! {
    cause: WindowsIpamOff,
    summary: "Windows support is off in ConfigMap amazon-vpc-cni, so no pod on a Windows Node gets an address",
    stages: [Initialize, Ready],
    reads: [VpcCniConfig, Events, Pods],
    versions: "all, if the control plane runs the VPC resource controller (since EKS 1.18)",
}

/// The resource that the controller offers on a Node, and the annotation with which it gives a pod its address.
/// Source: amazon-vpc-resource-controller-k8s pkg/config/type.go `ResourceNameIPAddress`.
const ADDRESSES: &str = "vpc.amazonaws.com/PrivateIPv4Address";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|node| node.is_windows())?;
    let waits = waits(case, node)?;
    if case.cluster.missing(Input::VpcCniConfig).is_some() {
        return None;
    }
    if let Some(offered) = node.status.allocatable.get(ADDRESSES).filter(|offered| !is_zero(offered)) {
        return Some(Opinion::ruled_out(node, format!("Node {} offers {offered} of {ADDRESSES}", node.name())));
    }
    let told = case.cluster.windows_ipam();
    if told.is_some_and(is_true) {
        return None;
    }
    let how = told
        .map_or_else(|| "lacks enable-windows-ipam".to_owned(), |told| format!("has enable-windows-ipam: \"{told}\""));
    Finding::new(
        Confidence::Certain,
        format!(
            "ConfigMap kube-system/amazon-vpc-cni {how}, so no pod on the Windows Node {} has got an address since {}.",
            node.name(),
            case.since()
        ),
        waits,
    )
    .with(Evidence::new(
        "ConfigMap/amazon-vpc-cni",
        "data['enable-windows-ipam']",
        told.unwrap_or("absent"),
        "the VPC resource controller gives Windows pods their addresses only if this is \"true\"",
    ))
    .with(Evidence::new(
        format!("Node/{}", node.name()),
        format!("status.allocatable['{ADDRESSES}']"),
        "absent",
        "the controller offers no addresses on this Node",
    ))
    .blaming(
        Blame::object("v1", "ConfigMap", "amazon-vpc-cni")
            .namespace("kube-system")
            .field("data['enable-windows-ipam']"),
    )
    .fix(
        "Set enable-windows-ipam: \"true\". If EKS manages the add-on, set enableWindowsIpam in its configuration \
         instead. Then recreate the waiting pods, because only pods created later get an address. The cluster role \
         needs AmazonEKSVPCResourceController.",
    )
    .change(
        "Turn Windows support on",
        "kubectl patch configmap -n kube-system amazon-vpc-cni --type merge -p \
             '{\"data\":{\"enable-windows-ipam\":\"true\"}}'"
            .to_owned(),
    )
    .step(Risk::LowRisk, "Recreate the waiting pods, because only pods created later get an address", None)
    .into()
}

/// The object that waits for addresses: a machine for pods that request them, or pods that the CNI plugin rejects.
fn waits(case: &Case, node: &Node) -> Option<Evidence> {
    if case.stage() == Stage::Initialize {
        let claim = case.claim.filter(|claim| node.is_ready() && missing(claim, node).contains(&ADDRESSES))?;
        let wanted = claim.spec.resources.requests.get(ADDRESSES).unwrap_or_default();
        let field = format!("spec.resources.requests['{ADDRESSES}']");
        return Some(Evidence::new(
            case.subject(),
            field,
            wanted,
            "Karpenter waits for this resource without a time limit",
        ));
    }
    // amazon-vpc-cni-plugins plugins/vpc-bridge/config/config.go, as in aws/amazon-vpc-resource-controller-k8s#86: it
    // asks a connector, whose words may be missing.
    let is_of_address = |said: &str| {
        said.contains(&format!("does not have label {ADDRESSES}")) || said.contains("failed to get pod IP address")
    };
    let refusals = case.cluster.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Network));
    let newest = refusals.filter(|e| is_of_address(&e.message)).max_by_key(|e| e.last_seen());
    let event = newest.filter(|_| case.wait.symptom == Symptom::PodsRefused)?;
    let object = format!("Event Pod/{}", event.involved_object.name);
    Some(Evidence::new(object, "message", event.said(), "the pod has no address"))
}

/// Source: go 1.26 strconv/atob.go `ParseBool`.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}
