//! The scheduler counts a Ready Node as one with room for another volume, but EC2 does not.

use crate::case::refused_volume::refused_volume;
use crate::cluster_state::memo::Memo;
use crate::objects::{Node, VolumeAttachment};
use crate::rules::prelude::*;
use std::collections::BTreeMap;

rule! {
    cause: VolumeLimitTooHigh,
    summary: "The Node is Ready and full of volumes: the EBS CSI driver announces more of them than EC2 attaches",
    stages: [Ready],
    reads: [Events, Pods, DaemonSets, VolumeAttachments],
    versions: "all",
}

/// The driver's pod on the nodes, which reads the instance type and announces how many volumes it supports.
/// Source: aws-ebs-csi-driver v1.50 charts/aws-ebs-csi-driver/templates/node.yaml, pkg/driver/node.go
/// `getVolumesLimit`.
const NODE_PART: &str = "ebs-csi-node";

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::VolumeRefused)?;
    let (pod, event) = refused_volume(case.cluster, node, case.now)?;
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
            "Node {} is Ready, but since {} EC2 attaches no further volume to it: EC2 refuses that of pod {name} \
             ({said}). The scheduler assigned the pod there anyway, so {whose} announces too high a limit.",
            node.name(),
            case.since()
        ),
        case.wait.evidence.clone(),
    )
    .with_all(attached(case, node))
    .linked([
        Link::new(format!("Node/{}", node.name()), "Ready, but EC2 attaches no further volume"),
        Link::new(format!("Pod/{name}"), said),
        Link::new(blame.object.clone(), "the announced limit is higher than the number that EC2 attaches"),
    ])
    .blaming(blame)
    .fix(format!(
        "Upgrade the EBS CSI driver (v1.49 and the first releases of v1.50 announce one too many for Nitro instances). \
         Or set node.volumeAttachLimit or node.reservedVolumeAttachments in its chart. To move pod {name} to another \
         node, cordon this node and delete the pod. Running pods are not disrupted."
    ))
    .inspect("See the limit that the scheduler uses", format!("kubectl get csinode {} -o yaml", node.name()))
    .change("Keep new pods away", format!("kubectl cordon {}", node.name()))
    .destroy(
        "Delete the pod, so that the scheduler assigns it to another node",
        format!("kubectl delete pod -n {namespace} {name}"),
    )
    .ask_aws(
        "Which network interfaces, or volumes from outside Kubernetes, are attached to the instance?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query \
             'Reservations[].Instances[].[BlockDeviceMappings,NetworkInterfaces]'",
            case.instance_id().unwrap_or("INSTANCE")
        ),
    )
    .into()
}

fn attached(case: &Case, node: &Node) -> Option<Evidence> {
    static COUNTS: Memo<BTreeMap<String, usize>> = Memo::new("EBS volumes by the Node that they are attached to");
    let counts = case.cluster.once(&COUNTS, "", || {
        let mut counts = BTreeMap::<String, usize>::new();
        let of_driver = |a: &&VolumeAttachment| a.spec.attacher.starts_with("ebs.csi.");
        for attachment in case.cluster.volume_attachments().filter(of_driver) {
            *counts.entry(attachment.spec.node_name.clone()).or_default() += 1;
        }
        counts
    });
    let count = counts.get(node.name()).copied().unwrap_or_default();
    let because = "the EBS volumes that the Node has or waits for";
    (count > 0).then(|| {
        Evidence::new(format!("Node/{}", node.name()), "VolumeAttachments", "of the EBS CSI driver", because)
            .figures(count.to_string())
    })
}
