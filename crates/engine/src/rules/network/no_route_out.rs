//! The machine's subnet has no route to the API server or to AWS.

use crate::explain::network_path::{hop, opinion};
use crate::rules::prelude::*;

rule! {
    cause: NoRouteOut,
    summary: "The subnet has no route to the API server or to AWS: its routes or their gateway are wrong",
    stages: [Join, Initialize],
    reads: [Nodes, NodeClasses, Deployments, DaemonSets, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
}

fn check(case: &Case) -> Option<Opinion> {
    opinion(case, hop::NO_ROUTE)
}
