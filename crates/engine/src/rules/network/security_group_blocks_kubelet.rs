//! Security groups of the machine or of its targets, or a network ACL, reject its calls.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: SecurityGroupBlocksKubelet,
    summary: "Security groups or a network ACL block the instance's way to the API server or to AWS",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::FILTERED)
}
