//! The scheduler takes a Ready Node for one that has room for a volume more, and EC2 does not.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::case::refused_volume::refused_volume;
use crate::case::stage::Symptom;
use crate::objects::input::Input;
use crate::objects::{Node, VolumeAttachment};
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "VolumeLimitTooHigh",
    summary: "The Node is Ready and full of volumes: the EBS CSI driver announces more of them than EC2 attaches",
    stages: &[Stage::Ready],
    reads: &[Input::Events, Input::Pods, Input::DaemonSets, Input::VolumeAttachments],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/VolumeLimitTooHigh.md"),
    check,
};

/// The driver's part on the Nodes, which reads the instance type and says how many volumes it takes.
/// Source: aws-ebs-csi-driver v1.50 charts/aws-ebs-csi-driver/templates/node.yaml, pkg/driver/node.go `getVolumesLimit`.
const NODE_PART: &str = "ebs-csi-node";

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|_| case.wait.symptom == Symptom::VolumeRefused) else { return Opinion::Silent };
    let Some((pod, event)) = refused_volume(case.cluster, node, case.now) else { return Opinion::Silent };
    let (name, namespace) = (&pod.metadata.name, pod.metadata.namespace.as_deref().unwrap_or_default());
    let said = event.said();
    let said = said.split_once("api error ").map_or(&*said, |(_, said)| said).trim_end_matches('.');
    let driver = case.cluster.daemon_sets().find(|set| set.metadata.name == *NODE_PART);
    let (whose, blame) = match driver {
        Some(set) => {
            let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
            (format!("DaemonSet {NODE_PART}"), Blame::object("apps/v1", "DaemonSet", NODE_PART).namespace(namespace))
        }
        None => ("the EBS CSI driver".to_owned(), Blame::object("v1", "Node", node.name())),
    };
    Finding::new(
        Confidence::Likely,
        format!(
            "Node {} is Ready, and since {} EC2 attaches no further volume to it: that of pod {name} is refused ({said}). The scheduler put the pod there all the same, so {whose} announces too high a limit.",
            node.name(),
            case.since()
        ),
        case.wait.evidence.clone(),
    )
    .with_all(attached(case, node))
    .linked([
        Link::new(format!("Node/{}", node.name()), "Ready, and EC2 attaches no further volume"),
        Link::new(format!("Pod/{name}"), said),
        Link::new(blame.object.clone(), "the limit that is announced is higher than what EC2 attaches"),
    ])
    .blaming(blame)
    .fix(format!("Upgrade the EBS CSI driver (v1.49 and the first of v1.50 say one too many for Nitro instances), or set node.volumeAttachLimit or node.reservedVolumeAttachments of its chart. Pod {name} goes elsewhere if it is deleted while the Node is cordoned."))
    .step(Risk::Inspect, "See the limit that the scheduler goes by", Some(format!("kubectl get csinode {} -o yaml", node.name())))
    .step(Risk::Mutating, "Keep further pods away", Some(format!("kubectl cordon {}", node.name())))
    .step(Risk::Destructive, "Let the pod be placed anew", Some(format!("kubectl delete pod -n {namespace} {name}")))
    .ask_aws(
        "What else is attached to the instance, network interfaces and volumes of others?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].[BlockDeviceMappings,NetworkInterfaces]'",
            case.instance_id().unwrap_or("INSTANCE")
        ),
    )
    .into()
}

fn attached(case: &Case, node: &Node) -> Option<Evidence> {
    let of_node = |a: &&VolumeAttachment| a.spec.node_name == node.name() && a.spec.attacher.starts_with("ebs.csi.");
    let count = case.cluster.volume_attachments().filter(of_node).count();
    let because = "the EBS volumes that the Node has or waits for";
    (count > 0).then(|| {
        Evidence::new(format!("Node/{}", node.name()), "VolumeAttachments", "of the EBS CSI driver", because)
            .figures(count.to_string())
    })
}
