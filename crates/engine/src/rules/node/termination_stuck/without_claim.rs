//! A Node that was deleted and whose NodeClaim is gone.

use super::budgets::{disruption_budget, shut_budget};
use super::finalizers::node_held_by_other;
use super::volumes::volumes;
use super::{drain_taint, head};
use crate::explain::{commands, volume_attachments};
use crate::objects::former::PROVISIONER_NAME;
use crate::objects::{Node, Pod, Taint};
use crate::rules::prelude::*;
use crate::upstream::karpenter::TERMINATION_FINALIZER;

/// Whether Karpenter drains it. If the kubelet is silent and the instance gone, it releases the Node undrained.
/// Source: core pkg/controllers/node/termination/controller.go `finalize` (v1.0.5, v1.14.3).
pub(super) fn is_drained_without_claim(case: &Case, node: &Node) -> bool {
    case.cluster.missing(Input::NodeClaims).is_none() && node.is_ready()
}

pub(super) fn without_claim(case: &Case, node: &Node) -> Option<Finding> {
    if case.cluster.missing(Input::NodeClaims).is_some() {
        return None;
    }
    node_held_by_other(case, node).or_else(|| {
        if is_drained_without_claim(case, node) {
            volumes(case, node)
                .or_else(|| shut_budget(case, node))
                .or_else(|| disruption_budget(case, node))
                .or_else(|| without_provisioner(case, node))
        } else {
            forgotten(case, node)
        }
    })
}

/// Karpenter has nothing left to wait for: the NodeClaim goes after the instance, and every pod that is left tolerates
/// the taint of the drain.
fn forgotten(case: &Case, node: &Node) -> Option<Finding> {
    let karpenter = case.karpenter().filter(|karpenter| karpenter.stopped.is_none())?;
    let ready = node.condition("Ready")?;
    let taint = drain_taint(node)?;
    let waited_for = |pod: &Pod| {
        !pod.has_ended()
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    };
    if case.cluster.missing(Input::Pods).is_some()
        || case.pods().any(waited_for)
        || volume_attachments::of(case, node, None).is_some()
    {
        return None;
    }
    let name = node.name();
    let owner = node.metadata.owner_references.iter().find(|owner| owner.kind == "NodeClaim");
    let claim = owner.map_or_else(|| "its NodeClaim".to_owned(), |owner| format!("its NodeClaim {}", owner.name));
    let (namespace, deployment) = karpenter.place();
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: {claim} is gone, its kubelet is silent and no pod is left to drain there, but Karpenter has not \
             removed its finalizer {TERMINATION_FINALIZER} from the Node.",
            head(case)
        ),
        Evidence::new(
            format!("Node/{name}"),
            "metadata.finalizers",
            node.metadata.finalizers.join(", "),
            "a NodeClaim goes only after its instance: with both gone, only this finalizer is left to remove",
        ),
    )
    .with(Evidence::new(
        format!("Node/{name}"),
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "Karpenter waits for no pod of a Node that is not Ready and whose instance is gone",
    ))
    .blaming(Blame::object("v1", "Node", name).field("metadata.finalizers"))
    .fix(
        "Restart Karpenter, which disrupts no node: it checks every Node again and removes the finalizer. If it does \
         not, its log says why (ec2:DescribeInstances denied). Once the instance is gone, you may remove the finalizer \
         by hand.",
    )
    .inspect("See what Karpenter logs", format!("{} | grep {name}", commands::karpenter_log(case)))
    .change("Restart Karpenter", format!("kubectl rollout restart deployment -n {namespace} {deployment}"))
    .destroy(
        "Remove the finalizer once the instance is gone",
        node.metadata.finalizers.iter().position(|f| *f == TERMINATION_FINALIZER).map(|at| {
            format!(
                "kubectl patch node {name} --type=json -p \
                 '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{at}\"}}]'"
            )
        }),
    )
    .ask_aws(
        "Is the instance gone?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
            case.instance_id().unwrap_or("INSTANCE")
        ),
    );
    Some(match case.cluster.missing(Input::VolumeAttachments) {
        Some(_) => finding.unknown(
            "Does a VolumeAttachment still name the Node?",
            format!("kubectl get volumeattachments -o wide | grep {name}"),
        ),
        None => finding,
    })
}

/// A Node of Karpenter before 0.28 that is empty and whose Provisioner is gone.
///
/// The drain of a Node did not look for a Provisioner. Users report that such Nodes stay
/// (aws/karpenter-provider-aws#2831).
/// Source: karpenter-provider-aws v0.18.1 pkg/controllers/termination/terminate.go `drain`, `terminate`.
fn without_provisioner(case: &Case, node: &Node) -> Option<Finding> {
    let provisioner = node.metadata.label(PROVISIONER_NAME).filter(|_| case.cluster.is_before_machines())?;
    let runs = case.karpenter().is_some_and(|karpenter| karpenter.stopped.is_none());
    let unread = [Input::NodePools, Input::Pods].into_iter().any(|input| case.cluster.missing(input).is_some());
    let cordon =
        Taint { key: "node.kubernetes.io/unschedulable".into(), effect: "NoSchedule".into(), ..Taint::default() };
    let waited_for = |pod: &Pod| {
        !pod.has_ended()
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(&cordon))
    };
    // A dump may hold the pods of one namespace only.
    let mut namespaces = case.cluster.pods().map(|pod| pod.metadata.namespace.as_deref());
    let first = namespaces.next()?;
    let whole = namespaces.any(|other| other != first) && case.pods().next().is_some();
    if !runs || unread || !whole || case.cluster.pool(provisioner).is_some() || case.pods().any(waited_for) {
        return None;
    }
    let name = node.name();
    let held = node.metadata.finalizers.iter().position(|own| *own == TERMINATION_FINALIZER)?;
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Provisioner {provisioner} is gone, no pod is left to drain there, but no controller removes \
             Karpenter's finalizer {TERMINATION_FINALIZER} from it.",
            head(case)
        ),
        Evidence::new(
            format!("Node/{name}"),
            "metadata.finalizers",
            node.metadata.finalizers.join(", "),
            "Karpenter terminates the instance and removes this once the Node is drained, and the Node is drained",
        ),
    )
    .with(Evidence::new(
        format!("Node/{name}"),
        format!("metadata.labels['{PROVISIONER_NAME}']"),
        provisioner,
        "there is no such Provisioner any more",
    ))
    .blaming(Blame::object("v1", "Node", name).field("metadata.finalizers"))
    .fix(format!(
        "Terminate the instance, then remove the finalizer by hand. Or create Provisioner {provisioner} again until \
         the Node is gone. Karpenter's log shows whether it tries (ec2:TerminateInstances denied)."
    ))
    .inspect("See what Karpenter logs", format!("{} | grep {name}", commands::karpenter_log(case)))
    .destroy(
        "Remove the finalizer once the instance is gone",
        format!(
            "kubectl patch node {name} --type=json -p \
             '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{held}\"}}]'"
        ),
    );
    Some(finding)
}
