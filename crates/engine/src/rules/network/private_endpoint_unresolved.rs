//! The VPC does not resolve the name of the API endpoint, or does not resolve it to its private addresses.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "PrivateEndpointUnresolved",
    summary: "The instance's DNS does not resolve the name of the private API endpoint",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/PrivateEndpointUnresolved.md"),
    check: |case| opinion(case, hop::NAME_UNRESOLVED),
};
