//! The VPC has an endpoint for the service, but the service's name does not resolve to it.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: PrivateDnsMissing,
    summary: "A VPC endpoint that the instance needs has private DNS off, so no instance uses it",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::PRIVATE_DNS_MISSING)
}
