//! A Ready Node that has a pod for whose volume EC2 has no place left there.

use super::judging::Judging;
use super::stage::{Symptom, Wait};

use crate::case::unstarted_pods::STILL_REFUSED;

use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::cluster_state::ClusterState;
use crate::objects::{Event, Node, Pod};
use chrono::{DateTime, TimeDelta, Utc};

/// Whether EC2 says that the instance has all the volumes that it can have.
/// Source: Amazon EC2 API Reference, error codes; aws-ebs-csi-driver v1.50 pkg/cloud/cloud.go `AttachDisk` passes it
/// on.
fn exceeds_machine(event: &Event) -> bool {
    event.reason == "FailedAttachVolume" && event.message.contains("AttachmentLimitExceeded")
}

/// Whether EC2 has taken the request, and the volume never arrives: so it is where no place is left that a volume and a
/// network interface share. It says nothing else, so the volumes that are there have to tell.
/// Sources: aws-ebs-csi-driver v1.22 pkg/cloud/cloud.go `WaitForAttachmentState`; EC2 User Guide, "Amazon EBS volume
/// limits for Amazon EC2 instances" (28 in all on most Nitro types).
fn never_arrives(cluster: &ClusterState, node: &Node, event: &Event) -> bool {
    const NEARLY_ALL: usize = 24;
    let is_stuck = event.reason == "FailedAttachVolume"
        && event.message.contains("expected device to be attached but was attaching")
        && event
            .first_timestamp
            .zip(event.last_seen())
            .is_some_and(|(first, last)| last - first >= TimeDelta::hours(1));
    let claims =
        |pod: &Pod| pod.spec.volumes.iter().filter(|v| !v.persistent_volume_claim.claim_name.is_empty()).count();
    is_stuck && cluster.pods_on(node.name()).map(claims).sum::<usize>() >= NEARLY_ALL
}

/// The pod that waits the longest, and what the attach-detach controller says of it. It tries again every few minutes.
pub fn refused_volume<'w>(cluster: &'w ClusterState, node: &Node, now: DateTime<Utc>) -> Option<(&'w Pod, &'w Event)> {
    let waits =
        |pod: &&Pod| !pod.spec.volumes.is_empty() && !pod.has_started() && pod.metadata.deletion_timestamp.is_none();
    let refused = cluster.pods_on(node.name()).filter(waits).flat_map(|pod| {
        let refuses = |e: &&Event| exceeds_machine(e) || never_arrives(cluster, node, e);
        let own = cluster.events("Pod", &pod.metadata.name).filter(|e| e.names(&pod.metadata)).filter(refuses);
        own.filter(|e| e.last_seen().is_some_and(|at| now - at <= STILL_REFUSED)).map(move |event| (pod, event))
    });
    refused.min_by_key(|(pod, event)| (event.first_timestamp.or(event.last_seen()), &pod.metadata.name))
}

pub(super) fn wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let (pod, event) = refused_volume(cluster, node, now)?;
    let because = "the scheduler has put the pod on the Node, and EC2 attaches no further volume there";
    let evidence = Evidence::new(format!("Event Pod/{}", pod.metadata.name), "message", event.said(), because);
    // A volume that is on its way off the machine makes room within minutes.
    let wait = Wait::new(Stage::Ready, event.first_timestamp.or(event.last_seen())?, t.ready * 2, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::VolumeRefused, ..wait })
}
