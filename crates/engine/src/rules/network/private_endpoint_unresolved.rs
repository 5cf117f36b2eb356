//! The VPC does not resolve the name of the API endpoint, or does not resolve it to its private addresses.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: PrivateEndpointUnresolved,
    summary: "The instance's DNS does not resolve the name of the private API endpoint",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::NAME_UNRESOLVED)
}
