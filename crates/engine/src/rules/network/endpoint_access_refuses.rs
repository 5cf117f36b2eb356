//! The public endpoint of the cluster admits others than this machine.

use crate::api::Stage;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::network_path::{hop, opinion};

pub static RULE: Rule = Rule {
    cause: "EndpointAccessRefuses",
    summary: "The cluster's public endpoint does not admit the address that the machine comes from",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only where nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/EndpointAccessRefuses.md"),
    check: |case| opinion(case, hop::ACCESS_REFUSED),
};
