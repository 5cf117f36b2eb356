//! The VPC CNI's report of calls that it may not make.

use crate::case::Case;
use crate::objects::{Event, Pod};

/// aws-node's own event about its pod, not older than the pod.
/// Source: amazon-vpc-cni-k8s v1.20.4 pkg/awsutils/awsutils.go `checkAPIErrorAndBroadcastEvent`; since v1.11 (#1536).
pub(crate) fn denied<'c>(case: &Case<'c>, pod: &Pod) -> Option<&'c Event> {
    let events = case.cluster.events("Pod", &pod.metadata.name).filter(|e| e.reason == "MissingIAMPermissions");
    events.filter(|e| e.last_seen() >= pod.metadata.creation_timestamp).max_by_key(|e| e.last_seen())
}
