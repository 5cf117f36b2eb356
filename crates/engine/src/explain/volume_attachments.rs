//! Why a volume stays attached to a drained Node: the component that must release it, and its progress.

use crate::api::{Blame, Evidence, Link};
use crate::case::finding::Finding;
use crate::case::{Case, timestamp};
use crate::explain::agent_chain;
use crate::explain::explanation::{Explanation, Proof};
use crate::objects::{DaemonSet, Node, VolumeAttachment, steady};
use crate::upstream::csi::{is_registrar, node_part};
use chrono::{DateTime, TimeDelta, Utc};

/// A detachment takes seconds, and the attacher retries a failed one within five minutes.
/// Source: kubernetes-csi/external-attacher README.md (037abaa), `--retry-interval-max`.
const ANSWERS_WITHIN: TimeDelta = TimeDelta::minutes(10);

/// The VolumeAttachment that holds a Node: the named one, otherwise the one with the most progress.
///
/// Karpenter waits for those of PersistentVolumes only.
/// Source: core pkg/controllers/node/termination/controller.go `filterVolumeAttachments` (v1.0.5, v1.14.1).
pub(crate) fn of<'c>(case: &Case<'c>, node: &Node, named: Option<&str>) -> Option<&'c VolumeAttachment> {
    let waited_for =
        |a: &&VolumeAttachment| a.spec.node_name == node.name() && a.spec.source.persistent_volume_name.is_some();
    case.cluster.volume_attachments().filter(waited_for).min_by_key(|a| {
        let fails = a.status.detach_error.is_some();
        (named.is_some_and(|name| *a.metadata.name != *name), !fails, a.metadata.deletion_timestamp.is_none())
    })
}

/// Why it stays.
pub(crate) struct Held {
    /// A clause after the VolumeAttachment's name.
    pub why: String,
    evidence: Evidence,
    remedy: Remedy,
}

enum Remedy {
    /// At the driver's controller, wherever it runs.
    Controller { fix: String, gone: bool },
    /// At the driver's pod on the Node.
    OnNode(Box<Explanation>),
}

impl Held {
    pub(crate) fn explain(self, finding: Finding, attachment: &VolumeAttachment) -> Finding {
        let name = &*attachment.metadata.name;
        let symptom = Link::new(self.evidence.object.clone(), self.evidence.observed.clone());
        let finding = finding.with(self.evidence);
        match self.remedy {
            Remedy::OnNode(explanation) => explanation.explain(finding, symptom),
            Remedy::Controller { fix, gone } => {
                let finding = finding.blaming(blame(attachment)).fix(fix);
                let step = "Remove the attacher's finalizer, if the driver is gone for good and no process of the node \
                            uses the volume";
                let finding = if gone {
                    let patch = r#"{"metadata":{"finalizers":null}}"#;
                    let command = format!("kubectl patch volumeattachment {name} --type=merge -p '{patch}'");
                    finding.destroy(step, command)
                } else {
                    finding
                };
                finding.unknown(
                    format!("Does the controller of {} run, and what does its attacher log?", attachment.spec.attacher),
                    "kubectl get pods -A -o wide | grep -i csi",
                )
            }
        }
    }
}

pub(crate) fn blame(attachment: &VolumeAttachment) -> Blame {
    Blame::object("storage.k8s.io/v1", "VolumeAttachment", &attachment.metadata.name)
}

/// The time until which it may go by itself, if the request is new.
pub(crate) fn goes_until(case: &Case, attachment: &VolumeAttachment) -> Option<DateTime<Utc>> {
    let until = attachment.metadata.deletion_timestamp?.checked_add_signed(ANSWERS_WITHIN)?;
    (until > case.now && attachment.status.detach_error.is_none()).then_some(until)
}

/// The known part of the detachment. Three components take part: the kubelet and the driver's pod on the Node unmount,
/// the attach-detach controller then deletes the VolumeAttachment, and the attacher beside the driver's controller
/// removes its finalizer.
/// Sources: kubernetes v1.36.3 pkg/volume/csi/csi_attacher.go `Detach`; kubernetes-csi/external-attacher
/// pkg/controller/csi_handler.go `syncDetach` (0f546a9), pkg/controller/util.go `GetFinalizerName`, `markAsDetached`
/// (2180e1b).
pub(crate) fn why(case: &Case, node: &Node, attachment: &VolumeAttachment) -> Option<Held> {
    let (name, driver) = (&*attachment.metadata.name, attachment.spec.attacher.as_str());
    let object = format!("VolumeAttachment/{name}");
    if let Some(error) = &attachment.status.detach_error {
        let said = told(&error.message);
        let denied = ["UnauthorizedOperation", "AccessDenied", "not authorized"].iter().any(|word| said.contains(word));
        let fix = if denied {
            format!(
                "Give the role of the controller of {driver} the permission that the error names. For EBS, the policy \
                 AmazonEBSCSIDriverPolicy has it. This disrupts nothing."
            )
        } else {
            format!("Fix the error that the controller of {driver} reports. It retries by itself.")
        };
        return Some(Held {
            why: format!("{driver} fails to detach it: {said}"),
            evidence: Evidence::new(
                object,
                "status.detachError.message",
                said,
                "the message of the driver's controller",
            ),
            remedy: Remedy::Controller { fix, gone: false },
        });
    }
    match attachment.metadata.deletion_timestamp {
        Some(at) => Some(unanswered(case, attachment, at)),
        None => not_asked_for(case, node, attachment),
    }
}

/// Its deletion was requested, but the attacher does not answer.
fn unanswered(case: &Case, attachment: &VolumeAttachment, at: DateTime<Utc>) -> Held {
    let (name, driver) = (&*attachment.metadata.name, attachment.spec.attacher.as_str());
    let at = timestamp(at);
    let gone = is_uninstalled(case, driver);
    let and = if gone { ", and no DaemonSet of that driver is left in the cluster" } else { "" };
    let fix = if gone {
        format!(
            "Install the driver {driver} again until its nodes are gone. Or remove its finalizer: EC2 detaches the \
             volumes of an instance that it terminates."
        )
    } else {
        format!(
            "Get the controller of {driver} running: its pods wait for a node, crash, or do not reach the API server \
             or AWS."
        )
    };
    Held {
        why: format!("its deletion was requested at {at}, but the attacher of {driver} has not answered{and}"),
        evidence: Evidence::new(
            format!("VolumeAttachment/{name}"),
            "metadata.finalizers",
            attachment.metadata.finalizers.join(", "),
            "only the attacher beside the driver's controller removes it, or writes why it cannot",
        ),
        remedy: Remedy::Controller { fix, gone },
    }
}

/// No component has requested its deletion: the volume counts as in use on the Node.
fn not_asked_for(case: &Case, node: &Node, attachment: &VolumeAttachment) -> Option<Held> {
    let (name, driver) = (&*attachment.metadata.name, attachment.spec.attacher.as_str());
    let set = node_part(case.cluster.daemon_sets(), driver)?;
    let (namespace, named) = (set.metadata.namespace.as_deref(), &*set.metadata.name);
    // A dump may hold the pods of some namespaces only.
    case.pods().find(|pod| pod.metadata.namespace.as_deref() == namespace)?;
    let pod = case.pods().find(|pod| pod.daemon_set() == Some(named));
    let behind = match pod {
        Some(pod) if pod.is_ready() => return None,
        Some(pod) => agent_chain::of_pod(case, node, pod),
        None => agent_chain::without_pod(case, node, named),
    };
    if matches!(behind.proof, Proof::None | Proof::Open) {
        return None;
    }
    Some(Held {
        why: format!(
            "the driver's pod on the Node, which unmounts, does not work: {}",
            behind.why.trim_end_matches('.')
        ),
        evidence: Evidence::new(
            format!("VolumeAttachment/{name}"),
            "metadata.deletionTimestamp",
            "absent",
            "a component requests its deletion only after the Node has unmounted the volume",
        ),
        remedy: Remedy::OnNode(Box::new(behind)),
    })
}

/// An error of AWS without the parts that differ with every try.
fn told(message: &str) -> String {
    let said = message.split_once("api error ").map_or(message, |(_, said)| said);
    let said = said.split(" Encoded authorization").next().unwrap_or(said);
    steady(said.trim().trim_end_matches('.')).into_owned()
}

/// Whether the cluster, whose DaemonSets were read, has none that could be this driver's.
fn is_uninstalled(case: &Case, driver: &str) -> bool {
    let system = |set: &DaemonSet| set.metadata.namespace.as_deref() == Some("kube-system");
    // What is named otherwise may be its.
    let stranger = |set: &DaemonSet| is_registrar(set) && !NODE_PARTS_OF_EKS.contains(&&*set.metadata.name);
    let sets = || case.cluster.daemon_sets();
    sets().any(system) && !sets().any(stranger) && node_part(sets(), driver).is_none()
}

/// The DaemonSets that certainly belong to another driver than `node_part` says.
/// Source: charts of aws-ebs-csi-driver, aws-efs-csi-driver, aws-fsx-csi-driver, aws-fsx-openzfs-csi-driver and
/// aws-mountpoint-s3-csi-driver, templates/node.yaml.
const NODE_PARTS_OF_EKS: [&str; 5] =
    ["ebs-csi-node", "efs-csi-node", "fsx-csi-node", "fsx-openzfs-csi-node", "s3-csi-node"];
