//! Security groups of the machine or of its targets, or a network ACL, reject its calls.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "SecurityGroupBlocksKubelet",
    summary: "Security groups or a network ACL block the instance's way to the API server or to AWS",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/SecurityGroupBlocksKubelet.md"),
    check: |case| opinion(case, hop::FILTERED),
};
