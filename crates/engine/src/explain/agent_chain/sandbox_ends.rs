//! The sandbox of an agent's pod ends each time that it is made: what runs in it, the pause container, does not stay.

use super::agent::Agent;
use crate::api::{Blame, Link};
use crate::case::Case;
use crate::case::unstarted_pods::STILL_REFUSED;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{Event, Node};
use readers::source_text::Span;

/// The kubelet makes a new sandbox for a pod that had one, and it says so each time.
/// Source: kubernetes v1.36.3 pkg/kubelet/events/event.go `SandboxChanged`,
/// pkg/kubelet/kuberuntime/kuberuntime_manager.go `SyncPod`.
const CHANGED: &str = "SandboxChanged";

/// Pause images of one architecture only, with that architecture. EKS's `eks/pause` has all.
// eksctl-io/eksctl#1832: before eks/pause, EKS published pause-amd64:3.1 and pause-arm64:3.1
const OF_ONE: [(&str, &str); 2] = [("pause-amd64", "amd64"), ("pause-arm64", "arm64")];

/// How many new sandboxes of a pod that has never started are no accident.
const OFTEN: u32 = 5;

pub(super) fn explained(case: &Case, node: &Node, agent: &Agent) -> Option<Explanation> {
    if agent.pod.has_started() {
        return None;
    }
    let is_again = |event: &Event| {
        event.reason == CHANGED
            && event.names(&agent.pod.metadata)
            && event.times() >= OFTEN
            && event.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED)
    };
    case.cluster.pod_events_on(node.name()).find(|event| is_again(event))?;
    let name = agent.name;
    let link = agent.link("the kubelet makes its sandbox again and again");
    let ends =
        format!("pod {name} does not start: the kubelet makes its sandbox again and again, because it ends each time");
    let image = || {
        let class = case.class()?;
        let text = class.spec.user_data.as_deref()?;
        let arch = node.metadata.label("kubernetes.io/arch")?;
        let (image, of) = OF_ONE.into_iter().find(|(image, of)| text.contains(image) && *of != arch)?;
        Some((class, text, arch, image, of))
    };
    let Some((class, text, arch, image, of)) = image() else {
        let why = format!("{ends}. The pause container, which holds a sandbox, does not run on this node");
        return Some(
            Explanation::new(Proof::Open, why, Blame::object("v1", "Node", node.name()), link)
                .fix(
                    "Find out why the pause container ends: containerd logs it. Its image must be of the node's \
                     architecture, and containerd and the kubelet must use the same cgroup driver.",
                )
                .ask("Why does the pause container end (journalctl -u containerd on the node)?", agent.describe()),
        );
    };
    let start = text.find(image)?;
    let (kind, class_name) = (&class.kind, class.name());
    let why =
        format!("{ends}. userData of {kind} {class_name} sets {image}, a pause image for {of}, and the node is {arch}");
    let blame = Blame::object(&class.api_version, kind, class_name).field("spec.userData");
    Some(
        Explanation::new(Proof::Lasting, why, blame.at(text, Span::new(start, start + image.len())), link)
            .behind(Link::new(format!("{kind}/{class_name}"), format!("its userData sets {image}, which is for {of}")))
            .fix(format!(
                "Remove the pause image from userData of {kind} {class_name}, because EKS images bring one for their \
                 own architecture. Or name eks/pause, which has both. New nodes will be correct, so replace this one."
            ))
            .change("Correct userData", format!("kubectl edit {} {class_name}", kind.to_ascii_lowercase())),
    )
}
