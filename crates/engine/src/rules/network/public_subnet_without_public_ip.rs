//! The machine is in a public subnet and has no public address.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "PublicSubnetWithoutPublicIp",
    summary: "The instance is in a public subnet but has no public IP",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/PublicSubnetWithoutPublicIp.md"),
    check: |case| opinion(case, hop::NO_PUBLIC_ADDRESS),
};
