//! Karpenter only waits for the end of the instance, or for a volume whose detachment nothing has requested.

use super::volumes::still_attached;
use super::{STILL_REFUSED, drain_taint, head, is_bounded, limit, step};
use crate::case::timestamp;
use crate::explain::{commands, volume_attachments};
use crate::objects::{Condition, Event, Node, NodeClaim, Pod};
use crate::rules::prelude::*;

pub(super) fn instance(case: &Case, claim: &NodeClaim, why: &str) -> Finding {
    let id = claim.instance_id().unwrap_or("INSTANCE");
    let state = |type_: &str| claim.condition(type_).map_or_else(|| "absent".to_owned(), Condition::shown);
    Finding::new(
        Confidence::Certain,
        format!("{}: {why} ({id}).", head(case)),
        Evidence::new(
            format!("NodeClaim/{}", claim.name()),
            r#"status.conditions[?(@.type=="InstanceTerminating")]"#,
            state("InstanceTerminating"),
            "the last step before Karpenter removes its finalizer",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()).field("status.conditions"))
    .fix(
        "Find out why EC2 keeps the instance: AWS denies Karpenter ec2:TerminateInstances (policy, permission \
         boundary, SCP), termination protection is on, or the instance hangs in shutting-down.",
    )
    .inspect("See what Karpenter logs", format!("{} | grep {}", commands::karpenter_log(case), claim.name()))
    .ask_aws(
        "Which state is the instance in?",
        format!(
            "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].[State,StateReason]'"
        ),
    )
}

/// Before 1.6 no condition shows Karpenter's progress. The pods do, and that it no longer reports a drain.
///
/// It then waits for the VolumeAttachments of the Node, in 1.0 without a message, or for EC2.
/// Sources: core pkg/controllers/node/termination/controller.go `finalize`, pkg/utils/pod/scheduling.go `IsDrainable`,
/// terminator/events/events.go `NodeFailedToDrain` (v1.0.5).
pub(super) fn nothing_to_drain(case: &Case, claim: &NodeClaim, node: &Node) -> Option<Finding> {
    let says_how_far = ["Drained", "VolumesDetached"].iter().any(|name| step(case, name).is_some());
    if says_how_far || is_bounded(case) || case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let drained_away = |pod: &Pod| {
        !pod.has_ended()
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    };
    let recent = |e: &&Event| e.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    // A dump may hold the pods of some namespaces only. Karpenter repeats what it waits for every two minutes.
    let tells = case.events().filter(recent).any(|e| e.reason == "DisruptionBlocked");
    let drains = case.events().filter(recent).any(|e| e.reason == "FailedDraining");
    if !tells || drains || case.pods().next().is_none() || case.pods().any(drained_away) {
        return None;
    }
    let name = node.name();
    let own_pod = |pod: &Pod| pod.daemon_set().is_none() && !pod.has_ended();
    match volume_attachments::of(case, node, None) {
        Some(attachment) if volume_attachments::goes_until(case, attachment).is_some() => return None,
        // A volume of a pod that stays is not waited for.
        Some(attachment) if !case.pods().any(own_pod) => {
            let evidence = Evidence::new(
                format!("VolumeAttachment/{}", attachment.metadata.name),
                "spec.nodeName",
                name,
                "every pod that is left there tolerates Karpenter's taint, and Karpenter does not report that it \
                 drains",
            );
            return Some(still_attached(case, node, attachment, evidence));
        }
        None if case.cluster.missing(Input::VolumeAttachments).is_none() => {
            return Some(instance(
                case,
                claim,
                "no pod is left to drain on its Node and no volume is attached, but Karpenter has not got the instance \
                 terminated",
            ));
        }
        _ => {}
    }
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: no pod is left to drain on its Node {name}. Either a volume is still attached there (nothing \
                 deletes its VolumeAttachment), or Karpenter has not got the instance terminated.",
                head(case)
            ),
            Evidence::new(
                format!("Node/{name}"),
                "metadata.deletionTimestamp",
                node.metadata.deletion_timestamp.map_or_else(|| "absent".to_owned(), |at| timestamp(at).to_string()),
                "every pod that is left there tolerates Karpenter's taint, and Karpenter does not report that it \
                 drains",
            ),
        )
        .blaming(Blame::object("v1", "Node", name))
        .fix(format!(
            "Check whether a VolumeAttachment names the Node. Its pod or its claim may have been deleted by force, or \
             its volume is Released, so no component requests the detachment. Delete it once no process uses the \
             volume. If there is none, find out why EC2 keeps the instance.{}",
            limit(case)
        ))
        .inspect("See which volumes are still attached", format!("kubectl get volumeattachments -o wide | grep {name}"))
        .inspect("See whether they are Released", "kubectl get persistentvolumes".to_owned())
        .inspect("See what Karpenter logs", format!("{} | grep {}", commands::karpenter_log(case), claim.name())),
    )
}
