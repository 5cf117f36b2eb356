//! Pods that must not be disrupted and never end by themselves.

use super::{can_be_limited, drain_taint, drains, head, is_bounded, limit};
use crate::facts::workload::PodWorkload;
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::karpenter::DO_NOT_DISRUPT;

/// The drain only waits for pods with the annotation whose owner keeps a fixed number of pods. Karpenter does not evict
/// them, and waits until they are gone.
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
            "{}: on its Node {} Karpenter only waits for pod {namespace}/{name}{more}, with {DO_NOT_DISRUPT}. \
             Karpenter does not evict them, {kind} {of} never ends them, and there is no terminationGracePeriod.",
            head(case),
            node.name()
        ),
        Evidence::new(
            format!("Pod/{name}"),
            "metadata.annotations",
            format!("{DO_NOT_DISRUPT}=true"),
            "since v1, Karpenter waits for such a pod and does not evict it",
        ),
    )
    .with(drains)
    .with(Evidence::new(
        case.subject(),
        "spec.terminationGracePeriod",
        "absent",
        "with this setting, Karpenter deletes the remaining pods after that time and terminates the instance",
    ))
    .blaming(workload.blame().field("spec.template.metadata.annotations"))
    .fix(format!(
        "Delete the pods as soon as your workload allows: {kind} {of} creates others elsewhere, and the drain \
         continues.{} Use {DO_NOT_DISRUPT} only for pods that end.",
        limit(case)
    ))
    .change(
        format!("Remove {DO_NOT_DISRUPT} from the template if its pods may be evicted. They are recreated"),
        workload.edit(),
    )
    .destroy("Or delete the pod. Its current work is lost", format!("kubectl delete pod -n {namespace} {name}"));
    Some(match case.pool_of_next().filter(|_| can_be_limited(case)) {
        Some(pool) => finding.change(
            "Set spec.template.spec.terminationGracePeriod. Existing nodes keep their setting",
            format!("kubectl edit nodepool {}", pool.name()),
        ),
        None => finding,
    })
}

/// A Job's pod ends, and an unknown owner may end its own pods.
fn stays(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.metadata.annotation(DO_NOT_DISRUPT) == Some("true")
        && matches!(pod.workload().0, "Deployment" | "ReplicaSet" | "StatefulSet")
}
