//! No pod can start on the Node, because containerd cannot pull the image of the pause container.

use crate::explain::pull;
use crate::rules::prelude::*;
use crate::upstream::node_events::{Sandbox, UNPACKING_FAILS, refused_sandbox};
use crate::upstream::vpc_cni;

rule! {
    cause: SandboxImagePullFails,
    summary: "No pod can start on the Node because containerd cannot pull the image of the pause container",
    stages: [Initialize, Ready],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

const DELETED: &str = "it is no longer on the node, and containerd there has no login to fetch it again";
const REPLACE: &str = "Replace the node, which evicts its pods, or pull the image there with a fresh login. A person \
                       or the kubelet's image garbage collection deleted it, and it does not come back. Newer EKS \
                       images pin it.";

/// For an image that no registry has: it comes with the machine image, and a disk mounted over it hides it.
const KEPT: &str = "it comes with the AMI, but containerd does not find it by this name";
const OTHER_IMAGE: &str = "Pin an AMI whose pods start, or correct what user data changes there. A volume over \
                           /var/lib/containerd hides the image, and containerd's configuration may name a sandbox \
                           image that is not on the node.";

/// containerd ignores every pod's pull secret for it.
/// Source: containerd v2.1 internal/cri/server/podsandbox/sandbox_run.go: what it pulls itself, it pulls with its own
/// configuration.
const LOGIN: &str = "Set a sandbox image in containerd's configuration that the nodes may pull, such as the one that \
                     comes with the AMI. Or give containerd a login to that registry in the same place, since it \
                     ignores imagePullSecrets for this image.";
/// A snapshotter that fetches layers itself, on demand, does not get the kubelet's login.
/// Source: awslabs/amazon-eks-ami#2710, #2717 (containerd 2.2.3, SOCI).
const NOT_UNPACKED: &str =
    "it is on the node, but containerd cannot unpack it: the snapshotter asks the registry for its layers again";
const OTHER_SNAPSHOTTER: &str = "Pin an AMI whose pods start (another containerd), or turn off the snapshotter that \
                                 fetches layers itself (nodeadm's feature gate FastImagePull, SOCI, or the one that \
                                 user data sets up).";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let waits_for_pods = case.wait.symptom == Symptom::PodsRefused;
    if vpc_cni::not_ready(node).is_none() && !(node.is_ready() && (waits_for_pods || case.stage() == Stage::Initialize))
    {
        return None;
    }
    let refused = case.cluster.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Image));
    let event = refused.filter(|e| e.last_seen() >= Some(case.wait.since)).max_by_key(|e| e.last_seen())?;
    let pull = pull::explain(&event.message);
    let is_full = pull == Some(pull::DISK_FULL);
    let unpacking = event.message.contains(UNPACKING_FAILS) && !is_full;
    let image = event
        .message
        .split('"')
        .find(|part| !unpacking && (part.contains("/pause") || part.contains("pause:")))
        .unwrap_or("of the pause container");
    let why = pull.map_or("it cannot be pulled", |p| p.why);
    let fix = pull.map_or("Give the node a way to pull the image.", |p| p.fix);
    let is_open = pull == Some(pull::NO_LOGIN_TO_ECR);
    let refused = (is_open || pull == Some(pull::REFUSED_BY_ECR)) && !unpacking;
    let elsewhere = pull == Some(pull::REFUSED_ELSEWHERE) && !unpacking;
    let names_the_fault = !unpacking && !is_open && pull.is_some_and(|p| p.is_explained() && !p.is_about_network);
    // A Ready Node has run pods, so the image was there. containerd has no login to ECR of its own: only what pulls at
    // boot asks for one.
    // Source: amazon-eks-ami @64b7016 templates/al2/runtime/pull-sandbox-image.sh; aws/containers-roadmap#1912
    let (why, fix) = match pull {
        Some(pull::REFUSED_BY_ECR | pull::NO_LOGIN_TO_ECR) if node.is_ready() => (DELETED, REPLACE),
        Some(pull::REFUSED_ELSEWHERE) => (why, LOGIN),
        _ => (why, fix),
    };
    // Source: awslabs/amazon-eks-ami#2729, #2122: it is imported when the machine's image is built, and no registry
    // answers at localhost.
    let kept = image.starts_with("localhost/");
    let (why, fix) = match kept {
        true if node.is_ready() => (KEPT, REPLACE),
        true => (KEPT, OTHER_IMAGE),
        false if unpacking => (NOT_UNPACKED, OTHER_SNAPSHOTTER),
        false => (why, fix),
    };
    let user_data = case.class().and_then(|class| class.spec.user_data.as_deref()).unwrap_or_default();
    let sets_up = ["containerd", "FastImagePull", "snapshotter"].iter().any(|word| user_data.contains(word));
    let field = match (refused, kept || unpacking) {
        _ if node.is_ready() => None,
        (true, _) => Some("spec.role"),
        _ if is_full => Some("spec.blockDeviceMappings"),
        (_, true) if sets_up => Some("spec.userData"),
        _ if elsewhere && user_data.contains("containerd") => Some("spec.userData"),
        (_, true) => Some("spec.amiSelectorTerms"),
        _ => None,
    };
    Finding::new(
        if case.is_overdue() && names_the_fault { Confidence::Certain } else { Confidence::Likely },
        format!(
            "No pod can start on Node {} since {}: every pod needs the image {image}, and {why}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            format!("Event Pod/{}", event.involved_object.name),
            "message",
            event.said(),
            "containerd creates no sandbox without its image",
        ),
    )
    .blaming(
        field.and_then(|field| case.class_field(field)).unwrap_or_else(|| Blame::object("v1", "Node", node.name())),
    )
    .fix(fix)
    .inspect(
        "See which pods wait for it",
        "kubectl get events -A --field-selector reason=FailedCreatePodSandBox".to_owned(),
    )
    .inspect("See which pods wait on the node", format!("kubectl describe node {}", node.name()))
    .into()
}
