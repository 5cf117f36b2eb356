//! Karpenter drained an agent that the drain itself needs.

use super::volumes::{Attached, attached};
use super::{PODS_GO_WITHIN, STILL_REFUSED, drain_taint, head};
use crate::explain::commands;
use crate::facts::{network_plugin, placement};
use crate::objects::{DaemonSet, Event, Node, Pod, Taint};
use crate::rules::prelude::*;
use crate::upstream::csi::is_of_driver;

/// Karpenter drained the driver's pod with the others, so nothing is left to unmount the volumes.
pub(super) fn never_unmounted(case: &Case, node: &Node) -> Option<Finding> {
    let attached = attached(case, node, case.wait.proven)?;
    if case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let mut drivers =
        case.cluster.daemon_sets().filter(|set| attaches(set)).filter(|set| lost_its_pod(case, set, node, taint));
    // Of several it is open whose volume it is.
    let (set, None) = (drivers.next()?, drivers.next()) else { return None };
    let name = &set.metadata.name;
    let Attached { evidence, said, attachment, .. } = attached;
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: its Node {} is drained, but its volumes are still attached{said}: the pod of DaemonSet {name}, which \
             unmounts them, was drained too because it does not tolerate {taint}.",
            head(case),
            node.name()
        ),
        evidence,
    );
    let finding = let_tolerate(finding, node, set, taint).fix(format!(
        "Add a toleration for {} to DaemonSet {name} (charts: tolerateAllTaints), so that it survives a drain. Volumes \
         that are attached now stay attached until you delete their VolumeAttachment.",
        taint.key
    ));
    Some(match attachment {
        Some(attachment) => finding.destroy(
            "Delete the VolumeAttachment once no process of the node uses the volume. Data that is not yet written is \
             lost",
            format!("kubectl delete volumeattachment {attachment}"),
        ),
        None => finding,
    })
}

/// Whether it is the node part of a CSI driver with attached volumes. Drivers for network file systems have
/// `attachRequired: false` in their CSIDriver.
/// Source: deploy/kubernetes/base/csidriver.yaml of aws-efs-csi-driver, aws-fsx-csi-driver,
/// aws-mountpoint-s3-csi-driver, aws-fsx-openzfs-csi-driver.
fn attaches(set: &DaemonSet) -> bool {
    const NEVER_ATTACHED: [&str; 4] = ["efs-csi-node", "fsx-csi-node", "fsx-openzfs-csi-node", "s3-csi-node"];
    is_of_driver(set) && !NEVER_ATTACHED.contains(&&*set.metadata.name)
}

/// The agent that tears down the network of a pod is gone from the Node, so the pods there never end.
pub(super) fn agent_gone(case: &Case, node: &Node) -> Option<Finding> {
    if case.cluster.missing(Input::Pods).is_some() {
        return None;
    }
    let taint = drain_taint(node)?;
    let deleted = |p: &&Pod| p.metadata.deletion_timestamp.is_some_and(|at| case.now - at > PODS_GO_WITHIN);
    let mut ending = case.pods().filter(|p| p.daemon_set().is_none()).filter(deleted);
    let recent = |e: &&Event| e.last_seen().is_some_and(|at| case.now - at <= STILL_REFUSED);
    let (pod, event, set) = ending.find_map(|pod| {
        let events = case.cluster.pod_events_on(node.name()).filter(recent);
        let mut own = events.filter(|e| e.reason == "FailedKillPod" && e.involved_object.name == pod.metadata.name);
        own.find_map(|event| {
            let name = network_plugin::of_plugin(undone_by(&event.message)?);
            let set = case.cluster.daemon_sets().find(|set| set.metadata.name == name)?;
            lost_its_pod(case, set, node, taint).then_some((pod, event, set))
        })
    })?;
    let name = &set.metadata.name;
    let of_pod = format!("{}/{}", pod.metadata.namespace.as_deref().unwrap_or("default"), pod.metadata.name);
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: pod {of_pod} on its Node {} cannot end, because DaemonSet {name}, which tears down its network, has \
             no pod there any more. It does not tolerate {taint}, and a drained or restarted pod does not come back.",
            head(case),
            node.name()
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "the kubelet retries, and Karpenter waits for the pod",
        )
        .figures(format!("{} times", event.times())),
    );
    Some(let_tolerate(finding, node, set, taint).fix(format!(
        "Add a toleration for {} to DaemonSet {name} (best for all taints, operator Exists). Its pod comes back, and \
         the drain continues.",
        taint.key
    )))
}

/// The network plugin that failed to tear down a pod's network.
/// Source: containernetworking/cni libcni/api.go v1.3.0 (`plugin type=%q failed (delete)`).
fn undone_by(message: &str) -> Option<&str> {
    let (before, _) = message.split_once(" failed (delete)")?;
    // Quoted once more where the runtime's words are.
    before.rsplit_once("plugin type=").map(|(_, plugin)| plugin.trim_matches(['\\', '"']))
}

/// Whether the DaemonSet would have a pod on the Node, but has none because of the taint of the drain: Karpenter
/// drained it with the others, or a rollout removed it.
fn lost_its_pod(case: &Case, set: &DaemonSet, node: &Node, taint: &Taint) -> bool {
    // A dump may hold the pods of some namespaces only.
    let seen = case.pods().any(|p| p.metadata.namespace == set.metadata.namespace);
    let gone = !case.pods().any(|p| p.daemon_set() == Some(&set.metadata.name));
    let mut before = node.clone();
    before.spec.taints.retain(|t| !t.matches(taint));
    seen && gone && !set.tolerates(taint) && placement::refusal(set, &before).is_none()
}

/// The step that brings it back.
fn let_tolerate(finding: Finding, node: &Node, set: &DaemonSet, taint: &Taint) -> Finding {
    let (namespace, name) = (set.metadata.namespace.as_deref().unwrap_or("kube-system"), &set.metadata.name);
    finding
        .with(Evidence::new(
            format!("DaemonSet/{name}"),
            "spec.template.spec.tolerations",
            format!("none for {taint}"),
            format!("it has no pod on Node {}, and gets none while the taint exists", node.name()),
        ))
        .blaming(
            Blame::object("apps/v1", "DaemonSet", name).namespace(namespace).field("spec.template.spec.tolerations"),
        )
        .change(
            format!("Add the toleration to DaemonSet {name}. A chart or an operator that owns it would revert this"),
            commands::tolerate(set, taint),
        )
}

#[cfg(test)]
mod tests {
    use super::undone_by;

    #[test]
    fn the_plugin_that_cannot_undo_the_network_is_read() {
        let quoted =
            r#"desc = failed to destroy network for sandbox \"5e\": plugin type=\"cilium-cni\" failed (delete): gone"#;
        assert_eq!(undone_by(quoted), Some("cilium-cni"));
        assert_eq!(undone_by(r#"plugin type="aws-cni" failed (delete): gone"#), Some("aws-cni"));
        assert_eq!(undone_by(r#"plugin type="aws-cni" failed (add): gone"#), None);
    }
}
