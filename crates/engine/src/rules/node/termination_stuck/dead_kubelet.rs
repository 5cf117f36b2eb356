//! The kubelet is gone, and pods wait for its confirmation.

use super::{PODS_GO_WITHIN, can_be_limited, drains, head, is_bounded, limit};
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::karpenter::DO_NOT_DISRUPT;

/// Pods whose deletion only the kubelet could finish, on a Node whose kubelet is gone.
pub(super) fn dead_kubelet(case: &Case, node: &Node) -> Option<Finding> {
    let ready = node.condition("Ready").filter(|c| c.status == "Unknown")?;
    let returns = ready.last_transition_time.is_some_and(|at| case.now - at < case.wait.proven);
    if returns || is_bounded(case) {
        return None;
    }
    let drains = drains(case)?;
    let deleted = |p: &&Pod| p.metadata.deletion_timestamp.is_some_and(|at| case.now - at > PODS_GO_WITHIN);
    let meant = |p: &&Pod| p.metadata.annotation(DO_NOT_DISRUPT) != Some("true");
    let pods: Vec<&Pod> = case.pods().filter(|p| p.daemon_set().is_none()).filter(deleted).filter(meant).collect();
    let first = pods.first()?;
    let others = match pods.len() {
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    let (namespace, pod) = (first.metadata.namespace.as_deref().unwrap_or("default"), &first.metadata.name);
    let field = "spec.template.spec.terminationGracePeriod";
    let can_be_limited = can_be_limited(case);
    let pool = case.pool().filter(|_| can_be_limited);
    let blame = match pool {
        Some(pool) => Blame::object("karpenter.sh/v1", "NodePool", pool.name()).field(field),
        None => Blame::object("v1", "Node", node.name()),
    };
    let because = if can_be_limited { ", because there is no terminationGracePeriod" } else { "" };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: the kubelet of Node {} no longer reports, so pod {namespace}/{pod}{others} can never finish \
             terminating. The drain waits for that without limit{because}.",
            head(case),
            node.name(),
        ),
        Evidence::new(
            format!("Node/{}", node.name()),
            r#"status.conditions[?(@.type=="Ready")]"#,
            ready.shown(),
            "only the kubelet confirms that a pod has ended",
        ),
    )
    .with(Evidence::new(
        format!("Pod/{pod}"),
        "metadata.deletionTimestamp",
        "past",
        "the pod was deleted long ago but still exists",
    ))
    .with(drains)
    .with_all(can_be_limited.then(|| {
        Evidence::new(
            case.subject(),
            "spec.terminationGracePeriod",
            "absent",
            "with this setting, Karpenter deletes the remaining pods after that time and terminates the instance",
        )
    }))
    .blaming(blame)
    .fix(format!(
        "Delete the pods by force once you are certain that they do not run, or terminate the instance. Karpenter then \
         releases the Node.{}",
        limit(case)
    ))
    .destroy(
        "Delete the pod by force. Its volume may be mounted twice if the instance still runs",
        format!("kubectl delete pod -n {namespace} {pod} --force --grace-period=0"),
    );
    Some(match pool {
        Some(pool) => finding.change(
            format!("Set {field}. Existing nodes keep their setting"),
            format!("kubectl edit nodepool {}", pool.name()),
        ),
        None => finding,
    })
}
