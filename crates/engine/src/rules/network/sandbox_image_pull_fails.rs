//! No pod can start on the Node, because the image of the pause container cannot be pulled.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::{Sandbox, Symptom, UNPACKING_FAILS, refused_sandbox};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::pull;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "SandboxImagePullFails",
    summary: "No pod can start on the Node: the image of the pause container cannot be pulled",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/SandboxImagePullFails.md"),
    check,
};

const DELETED: &str = "it is no longer on the machine, whose containerd has no login of its own to fetch it again";
const REPLACE: &str = "Replace the machine (or pull the image there with a fresh login): what was deleted, by hand or by the kubelet's image garbage collection, does not come back. Newer EKS images pin it.";

/// What no registry has: it comes with the machine's image, and is gone with the disk that hides it.
const KEPT: &str = "it comes with the machine's image, whose containerd does not find it by this name";
const OTHER_IMAGE: &str = "Pin a machine image whose pods start, or correct what user data changes there: a volume over /var/lib/containerd hides the image, and another sandbox image in containerd's configuration asks for one that is not kept.";

/// No pod's secret counts for it.
/// Source: containerd v2.1 internal/cri/server/podsandbox/sandbox_run.go: what it pulls itself, it pulls with its own
/// configuration.
const LOGIN: &str = "Name a sandbox image in containerd's configuration that the Nodes may pull, such as the one that the machine's image comes with, or give containerd a login to that registry there: imagePullSecrets do not count for it.";
/// A snapshotter that fetches layers itself, when they are needed, has no login of the kubelet's.
/// Source: awslabs/amazon-eks-ami#2710, #2717 (containerd 2.2.3, SOCI).
const NOT_UNPACKED: &str = "it is on the machine, whose containerd cannot unpack it: the snapshotter asks the registry for its layers once more";
const OTHER_SNAPSHOTTER: &str = "Pin a machine image whose pods start (another containerd), or turn off the snapshotter that fetches layers itself (nodeadm's feature gate FastImagePull, SOCI, or what user data sets up).";

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node else { return Opinion::Silent };
    let waits_for_pods = case.wait.symptom == Symptom::PodsRefused;
    if vpc_cni::not_ready(node).is_none() && !(node.is_ready() && (waits_for_pods || case.stage() == Stage::Initialize))
    {
        return Opinion::Silent;
    }
    let refused = case.cluster.pod_events_on(node.name()).filter(|e| refused_sandbox(e) == Some(Sandbox::Image));
    let Some(event) = refused.filter(|e| e.last_seen() >= Some(case.wait.since)).max_by_key(|e| e.last_seen()) else {
        return Opinion::Silent;
    };
    let unpacking = event.message.contains(UNPACKING_FAILS);
    let pull = pull::explain(&event.message);
    let image = event
        .message
        .split('"')
        .find(|part| !unpacking && (part.contains("/pause") || part.contains("pause:")))
        .unwrap_or("of the pause container");
    let why = pull.map_or("it cannot be pulled", |p| p.why);
    let fix = pull.map_or("Let the Node pull the image.", |p| p.fix);
    let is_open = pull == Some(pull::NO_LOGIN_TO_ECR);
    let refused = (is_open || pull == Some(pull::REFUSED_BY_ECR)) && !unpacking;
    let elsewhere = pull == Some(pull::REFUSED_ELSEWHERE) && !unpacking;
    let names_the_fault = !unpacking && !is_open && pull.is_some_and(|p| p != pull::UNEXPLAINED && !p.is_about_network);
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
            "containerd makes no sandbox without its image",
        ),
    )
    .blaming(
        field.and_then(|field| case.class_field(field)).unwrap_or_else(|| Blame::object("v1", "Node", node.name())),
    )
    .fix(fix)
    .step(
        Risk::Inspect,
        "See which pods wait for it",
        Some("kubectl get events -A --field-selector reason=FailedCreatePodSandBox".to_owned()),
    )
    .step(Risk::Inspect, "See what waits on the Node", Some(format!("kubectl describe node {}", node.name())))
    .into()
}
