//! Pods that must not be disrupted, and that never end by themselves.

use super::{drain_taint, drains, head, is_bounded};
use crate::api::{Confidence, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::input::Input;
use crate::objects::{Node, Pod};
use crate::rules::shared::workload::PodWorkload;
use crate::upstream::karpenter::DO_NOT_DISRUPT;

/// All that a drain waits for has the annotation, and belongs to what keeps as many pods as it was told to: Karpenter
/// evicts none of them, and waits until they are gone.
/// Source: core pkg/utils/pod/scheduling.go `IsDrainable`, `IsEvictable` (v1.0.5, v1.14.1); a duration in place of
/// `true` ends by itself.
pub(super) fn undisturbed(case: &Case, node: &Node) -> Option<Finding> {
    if is_bounded(case) || case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let drains = drains(case)?;
    let waited_for = |pod: &&Pod| {
        !pod.has_ended()
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    };
    let pods: Vec<&Pod> = case.pods().filter(waited_for).collect();
    let (pod, others) = pods.split_first().filter(|_| pods.iter().all(|pod| stays(pod)))?;
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    let (kind, of) = pod.workload();
    let workload = PodWorkload::of(Some(pod), namespace, name);
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Node {} holds nothing more that Karpenter waits for than pod {namespace}/{name}{more}, with {DO_NOT_DISRUPT}: Karpenter evicts none of them, {kind} {of} ends none, and there is no terminationGracePeriod.",
            head(case),
            node.name()
        ),
        Evidence::new(
            format!("Pod/{name}"),
            "metadata.annotations",
            format!("{DO_NOT_DISRUPT}=true"),
            "since v1, Karpenter waits for such a pod, and does not evict it",
        ),
    )
    .with(drains)
    .with(Evidence::new(
        case.subject(),
        "spec.terminationGracePeriod",
        "absent",
        "with one, Karpenter deletes what is left once it is over, and terminates the instance",
    ))
    .blaming(workload.blame().field("spec.template.metadata.annotations"))
    .fix(format!("Delete the pods once they may go: {kind} {of} makes others elsewhere, and the drain goes on. A terminationGracePeriod on the NodePool bounds the wait of the next machines; leave {DO_NOT_DISRUPT} to pods that end."))
    .step(
        Risk::Mutating,
        format!("Take {DO_NOT_DISRUPT} off the template, if its pods may be evicted: they are made anew"),
        Some(workload.edit()),
    )
    .step(
        Risk::Destructive,
        "Or delete the pod; what it does at that moment is lost",
        Some(format!("kubectl delete pod -n {namespace} {name}")),
    );
    Some(match case.pool_of_next() {
        Some(pool) => finding.step(
            Risk::Mutating,
            "Set spec.template.spec.terminationGracePeriod; machines that exist keep what they were made with",
            Some(format!("kubectl edit nodepool {}", pool.name())),
        ),
        None => finding,
    })
}

/// A Job's pod ends, and an owner that is not known may end its own.
fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.metadata.annotation(DO_NOT_DISRUPT) == Some("true")
        && matches!(pod.workload().0, "Deployment" | "ReplicaSet" | "StatefulSet")
}
