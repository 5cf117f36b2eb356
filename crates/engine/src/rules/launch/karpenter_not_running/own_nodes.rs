//! Karpenter waits for a Node that only Karpenter can make usable.

use super::own_pod_pending::without_node;
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{NOT_READY_TAINT, UNREGISTERED_TAINT};

/// Karpenter's own pod cannot be scheduled because of a taint that only Karpenter removes.
pub(super) struct WaitsForOwnNodes<'w> {
    pod: &'w Pod,
    said: &'w str,
    node: &'w Node,
    taint: &'static str,
}

/// None of its pods has a Node, and the scheduler names the taint of an existing Node.
/// Source: karpenter.sh docs/getting-started, "Karpenter must run on nodes that it does not manage";
/// aws/karpenter-provider-aws#1099.
pub(super) fn waits_for_own_nodes<'w>(case: &Case<'w>, namespace: &str) -> Option<WaitsForOwnNodes<'w>> {
    let (pod, said) = without_node(case, namespace)?;
    [NOT_READY_TAINT, UNREGISTERED_TAINT].into_iter().filter(|taint| said.contains(taint)).find_map(|taint| {
        let is_own =
            |node: &&Node| node.metadata.label("karpenter.sh/nodepool").is_some() && node.taint(taint).is_some();
        let node = case.cluster.nodes().find(|node| is_own(node) && node.is_ready())?;
        Some(WaitsForOwnNodes { pod, said, node, taint })
    })
}

impl WaitsForOwnNodes<'_> {
    pub(super) fn onto(self, finding: Finding, namespace: &str, name: &str) -> Finding {
        let Self { pod, said, node, taint } = self;
        let (pod, node) = (&pod.metadata.name, node.name());
        let effect = |taint| node_effect(self.node, taint);
        finding
            .adding(&format!(
                "Its pod {pod} is Pending: it fits only on Nodes that wait for Karpenter itself, such as {node}. Only \
                 Karpenter removes the taint {taint} of that Node, so both wait for each other."
            ))
            .with(Evidence::new(
                format!("Pod/{namespace}/{pod}"),
                "status.conditions",
                said,
                "Karpenter removes this taint when it runs",
            ))
            .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec"))
            .fix(
                "Give Karpenter Nodes that it does not create: a managed node group, or a Fargate profile. To end the \
                 deadlock, scale the node group up, or remove the taint from a Ready Node.",
            )
            .change(
                "Let Karpenter start on a Ready Node",
                format!("kubectl taint node {node} {taint}:{}-", effect(taint)),
            )
    }
}

fn node_effect<'n>(node: &'n Node, taint: &str) -> &'n str {
    node.taint(taint).map_or("NoSchedule", |taint| taint.effect.as_str())
}
