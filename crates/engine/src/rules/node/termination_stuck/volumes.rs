//! The Node is drained, but its volumes are still attached.

use super::{head, is_name, lasts, limit, step};
use crate::explain::volume_attachments;
use crate::objects::{Node, VolumeAttachment};
use crate::rules::prelude::*;
use chrono::TimeDelta;

/// Karpenter waits for the volumes of a Node that is drained.
pub(super) struct Attached<'c> {
    /// The object that shows it.
    pub(super) evidence: Evidence,
    /// Karpenter's report of it, in brackets.
    pub(super) said: String,
    /// The attachment by its name, from Karpenter's event.
    pub(super) attachment: Option<&'c str>,
    /// The object and field that nodewhy read.
    object: Option<&'c VolumeAttachment>,
}

/// Whether that is the current step, for as long as `wait`. Before 1.6 only the event shows it, which repeats while it
/// lasts.
pub(super) fn attached<'c>(case: &Case<'c>, node: &Node, wait: TimeDelta) -> Option<Attached<'c>> {
    const BECAUSE: &str =
        "Karpenter waits until the attach-detach controller has deleted the VolumeAttachments of the Node";
    let event = case.event("AwaitingVolumeDetachment");
    let evidence = match (step(case, "Drained"), step(case, "VolumesDetached")) {
        (Some(drained), Some(detached)) if drained.is_true() && !detached.is_true() && !detached.is_false() => {
            Evidence::new(
                case.subject(),
                r#"status.conditions[?(@.type=="VolumesDetached")]"#,
                detached.shown(),
                BECAUSE,
            )
        }
        (None, None) => {
            let event = event.filter(|e| lasts(case, e, wait))?;
            Evidence::new(format!("Event/{}", event.metadata.name), "message", event.said(), BECAUSE)
                .figures(format!("{} times", event.times()))
        }
        _ => return None,
    };
    let named = event.and_then(|e| first_attachment(&e.message));
    let object = volume_attachments::of(case, node, named);
    Some(Attached {
        evidence,
        said: event.map_or_else(String::new, |e| format!(" ({})", e.said().trim_end_matches('.'))),
        attachment: object.map(|object| &*object.metadata.name).or(named),
        object,
    })
}

pub(super) fn volumes(case: &Case, node: &Node) -> Option<Finding> {
    let Attached { evidence, said, attachment, object } = attached(case, node, case.wait.proven * 2)?;
    if let Some(object) = object {
        if volume_attachments::goes_until(case, object).is_some() {
            return None;
        }
        return Some(still_attached(case, node, object, evidence));
    }
    let (blame, look) = match attachment {
        Some(name) => (
            Blame::object("storage.k8s.io/v1", "VolumeAttachment", name),
            format!("kubectl get volumeattachment {name} -o yaml"),
        ),
        None => (
            Blame::object("v1", "Node", node.name()),
            format!("kubectl get volumeattachments -o wide | grep {}", node.name()),
        ),
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!("{}: its Node {} is drained, but its volumes are still attached{said}.", head(case), node.name()),
            evidence,
        )
        .blaming(blame)
        .fix(format!(
            "Find out why the VolumeAttachment stays. The CSI driver's controller is down or AWS denies it \
             ec2:DetachVolume, the kubelet no longer unmounts, or a deleted pod left the attachment behind.{}",
            limit(case)
        ))
        .inspect("See why the volume is still attached: deletionTimestamp and status.detachError", look),
    )
}

/// The finding if nodewhy read the VolumeAttachment, which shows the component that must release the volume.
pub(super) fn still_attached(case: &Case, node: &Node, attachment: &VolumeAttachment, evidence: Evidence) -> Finding {
    let name = &*attachment.metadata.name;
    let held = volume_attachments::why(case, node, attachment);
    let volume = attachment.spec.source.persistent_volume_name.as_deref().unwrap_or("unknown");
    let why = match &held {
        Some(held) => format!(": {}", held.why),
        None => ", and no component has requested its deletion".to_owned(),
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Node {} is drained, but volume {volume} is still attached there by VolumeAttachment {name}{why}.",
            head(case),
            node.name()
        ),
        evidence,
    )
    .inspect("See its deletionTimestamp and status.detachError", format!("kubectl get volumeattachment {name} -o yaml"))
    .inspect("See whether the volume is Released", format!("kubectl get persistentvolumes {volume}"));
    match held {
        Some(held) => held.explain(finding, attachment),
        None => finding.blaming(volume_attachments::blame(attachment)).fix(format!(
            "Find out why the volume counts as in use there. Either the kubelet does not unmount it, or its pod or \
             claim was deleted by force and the volume is Released. Delete the VolumeAttachment once no process uses \
             the volume.{}",
            limit(case)
        )),
    }
}

/// The first name of `Awaiting deletion of bound volumeattachments (csi-1, csi-2 and 3 other(s))`.
/// Source: core pkg/controllers/node/termination/terminator/events/events.go `NodeAwaitingVolumeDetachmentEvent`
/// (v1.14.3).
fn first_attachment(message: &str) -> Option<&str> {
    let (_, names) = message.split_once("volumeattachments (")?;
    names.split([',', ' ', ')']).next().filter(|name| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::first_attachment;

    #[test]
    fn only_a_name_is_taken_from_the_event() {
        let first = |names: &str| {
            first_attachment(&format!("Awaiting deletion of bound volumeattachments ({names})")).map(str::to_owned)
        };
        assert_eq!(first("csi-12ab"), Some("csi-12ab".to_owned()));
        assert_eq!(first("csi-1, csi-2 and 3 other(s)"), Some("csi-1".to_owned()));
        assert_eq!(first(""), None);
        assert_eq!(first("$(reboot)"), None);
        assert_eq!(first("--all"), None);
        assert_eq!(first_attachment("Awaiting something else (csi-1)"), None);
    }
}
