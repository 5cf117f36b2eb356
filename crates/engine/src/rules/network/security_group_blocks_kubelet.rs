//! Security groups, of the machine or of what it calls, or a network ACL refuse its calls.

use crate::api::Stage;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::network_path::{hop, opinion};

pub static RULE: Rule = Rule {
    cause: "SecurityGroupBlocksKubelet",
    summary: "Security groups or a network ACL keep the machine from the API server or from AWS",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only where nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/SecurityGroupBlocksKubelet.md"),
    check: |case| opinion(case, hop::FILTERED),
};
