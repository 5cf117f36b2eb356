//! Karpenter waits for a Node that only Karpenter makes usable.

use super::own_pod_pending::without_node;
use crate::api::{Blame, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Node, Pod};
use crate::upstream::karpenter::{NOT_READY_TAINT, UNREGISTERED_TAINT};

/// Karpenter's own pod finds no place for a taint that Karpenter alone takes off.
pub(super) struct WaitsForOwnNodes<'w> {
    pod: &'w Pod,
    said: &'w str,
    node: &'w Node,
    taint: &'static str,
}

/// None of its pods has a Node, and the scheduler names the taint of a Node that is there.
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
                "Its pod {pod} is Pending: it finds no place but on Nodes that wait for Karpenter itself, such as {node}, whose taint {taint} only Karpenter takes off, so both wait for each other."
            ))
            .with(Evidence::new(
                format!("Pod/{namespace}/{pod}"),
                "status.conditions",
                said,
                "Karpenter takes this taint off, once it runs",
            ))
            .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec"))
            .fix("Give Karpenter Nodes that it does not make: a managed node group, or a Fargate profile. To get out of the deadlock, scale the node group up, or take the taint off a Node that is Ready.")
            .step(
                Risk::Mutating,
                "Let Karpenter start on a Node that is Ready",
                Some(format!("kubectl taint node {node} {taint}:{}-", effect(taint))),
            )
    }
}

fn node_effect<'n>(node: &'n Node, taint: &str) -> &'n str {
    node.taint(taint).map_or("NoSchedule", |taint| taint.effect.as_str())
}
