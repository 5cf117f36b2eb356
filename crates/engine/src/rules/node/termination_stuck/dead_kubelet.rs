//! The kubelet is gone, and pods wait for its word.

use super::{PODS_GO_WITHIN, head};
use crate::api::{Blame, Confidence, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Node, Pod};
use crate::upstream::karpenter::DO_NOT_DISRUPT;

/// Pods whose deletion only the kubelet could finish, on a Node whose kubelet is gone.
pub(super) fn dead_kubelet(case: &Case, node: &Node) -> Option<Finding> {
    let ready = node.condition("Ready").filter(|c| c.status == "Unknown")?;
    let deleted = |p: &&Pod| p.metadata.deletion_timestamp.is_some_and(|at| case.now - at > PODS_GO_WITHIN);
    let meant = |p: &&Pod| p.metadata.annotation(DO_NOT_DISRUPT) != Some("true");
    let pods: Vec<&Pod> = case.pods().filter(|p| p.daemon_set().is_none()).filter(deleted).filter(meant).collect();
    let first = pods.first()?;
    let others = match pods.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let namespace = first.metadata.namespace.as_deref().unwrap_or("default");
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: the kubelet of Node {} no longer reports, so pod {namespace}/{}{others} can never finish terminating, and Karpenter waits for that.",
                head(case),
                node.name(),
                first.metadata.name
            ),
            Evidence::new(format!("Node/{}", node.name()), r#"status.conditions[?(@.type=="Ready")]"#, ready.shown(), "only the kubelet confirms that a pod has ended"),
        )
        .with(Evidence::new(format!("Pod/{}", first.metadata.name), "metadata.deletionTimestamp", "past", "the pod was deleted long ago and is still there"))
        .blaming(Blame::object("v1", "Node", node.name()))
        .fix("Terminate the instance, or delete the pods by force once it is certain that they do not run; a terminationGracePeriod on the NodePool bounds the wait.")
        .step(
            Risk::Destructive,
            "Delete the pod by force; its volume may be mounted twice if the instance still runs",
            Some(format!("kubectl delete pod -n {namespace} {} --force --grace-period=0", first.metadata.name)),
        ),
    )
}
