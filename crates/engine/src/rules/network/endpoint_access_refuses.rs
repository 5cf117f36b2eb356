//! The cluster's public endpoint does not accept this machine's address.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: EndpointAccessRefuses,
    summary: "The cluster's public endpoint does not accept the instance's address",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::ACCESS_REFUSED)
}
