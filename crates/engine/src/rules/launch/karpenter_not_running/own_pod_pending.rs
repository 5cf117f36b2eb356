//! Karpenter's own pods find no Node.

use crate::case::port_held::{NO_FREE_PORT, holder};
use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::karpenter::is_karpenter;

/// A pod of Karpenter's that waits for a Node, and the scheduler's message.
pub(super) struct OwnPodPending<'w> {
    pod: &'w Pod,
    said: &'w str,
    /// The workload that uses the port of the Node that the pod requests.
    port: Option<(u16, &'w Pod)>,
}

/// One of its pods, if none has a Node, and the scheduler's message about it.
pub(super) fn without_node<'w>(case: &Case<'w>, namespace: &str) -> Option<(&'w Pod, &'w str)> {
    let own = case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod));
    let waiting: Option<Vec<(&Pod, &str)>> = own.map(|pod| Some((pod, pod.unscheduled()?))).collect();
    waiting?.into_iter().next()
}

pub(super) fn own_pod_pending<'w>(case: &Case<'w>, namespace: &str) -> Option<OwnPodPending<'w>> {
    let (pod, said) = without_node(case, namespace)?;
    let nodes = case.cluster.nodes().filter(|_| said.contains(NO_FREE_PORT));
    let port = nodes.into_iter().find_map(|node| holder(case.cluster, node, pod));
    Some(OwnPodPending { pod, said, port })
}

impl OwnPodPending<'_> {
    pub(super) fn onto(self, finding: Finding, namespace: &str, name: &str) -> Finding {
        let Self { pod, said, port } = self;
        let pod = &pod.metadata.name;
        let taken = port.map_or_else(String::new, |(port, holder)| {
            let (kind, workload) = holder.workload();
            let of = holder.metadata.namespace.as_deref().unwrap_or("default");
            format!(" It requests port {port} of the Node, which {kind} {of}/{workload} uses there.")
        });
        let fix = match port {
            Some((port, _)) => format!(
                "Give one of the two another port than {port}. For Karpenter, set controller.metrics.port or \
                 controller.healthProbe.port of its chart, if it is in the Node's network (hostNetwork)."
            ),
            None => "Give Karpenter's pods a Node that fits: the scheduler's message names what each Node lacks. \
                     Karpenter launches no node for itself, so a managed node group or a Fargate profile must have the \
                     room."
                .to_owned(),
        };
        finding
            .adding(&format!("Its pod {pod} is Pending: {said}{taken}"))
            .with(Evidence::new(
                format!("Pod/{namespace}/{pod}"),
                r#"status.conditions[?(@.type=="PodScheduled")]"#,
                said,
                "no Node fits it, and no component launches another while Karpenter does not run",
            ))
            .blaming(Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec"))
            .fix(fix)
            .inspect("See why it does not fit the Nodes", format!("kubectl describe pod -n {namespace} {pod}"))
    }
}
