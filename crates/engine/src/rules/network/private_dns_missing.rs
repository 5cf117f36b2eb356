//! The VPC has an endpoint for the service, but the service's name does not resolve to it.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "PrivateDnsMissing",
    summary: "A VPC endpoint that the instance needs has private DNS off, so no instance uses it",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/PrivateDnsMissing.md"),
    check: |case| opinion(case, hop::PRIVATE_DNS_MISSING),
};
