//! The machine is in a public subnet and has no public address.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: PublicSubnetWithoutPublicIp,
    summary: "The instance is in a public subnet but has no public IP",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::NO_PUBLIC_ADDRESS)
}
