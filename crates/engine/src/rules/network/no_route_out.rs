//! The machine's subnet has no route to the API server or to AWS.

use crate::api::Stage;
use crate::explain::network_path::{hop, opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NoRouteOut",
    summary: "The subnet has no route to the API server or to AWS: its routes or their gateway are wrong",
    stages: &[Stage::Join, Stage::Initialize],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Deployments, Input::DaemonSets, Input::AwsObservations],
    lint: false,
    versions: "all; seen only if nodewhy may ask EC2 and EKS (--aws)",
    page: include_str!("../../../pages/NoRouteOut.md"),
    check: |case| opinion(case, hop::NO_ROUTE),
};
