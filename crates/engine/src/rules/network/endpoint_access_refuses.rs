//! The cluster's public endpoint does not accept this machine's address.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "EndpointAccessRefuses",
    summary: "The cluster's public endpoint does not accept the instance's address",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/EndpointAccessRefuses.md"),
    check: |case| opinion(case, hop::ACCESS_REFUSED),
};
