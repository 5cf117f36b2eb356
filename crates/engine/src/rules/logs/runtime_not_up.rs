//! The machine's log says that the container runtime does not answer.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "RuntimeNotUp",
    summary: "containerd is not up when it is needed: its configuration is refused, or whoever needs it does not wait",
    stages: &[Stage::Join, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/RuntimeNotUp.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::RuntimeNotUp]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix("Correct containerd's configuration where it refuses it; where it is only slow, use an image whose nodeadm waits for it, and let the machine be replaced.")
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
