//! The machine's log says that its accelerator's driver does not run.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "DeviceDriverFails",
    summary: "A driver or device plugin logged that it cannot use the accelerator",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/DeviceDriverFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::DeviceFails]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix(
            "Use an image that has a driver for this accelerator, or a newer release of it. If it has one and other \
             nodes with it work, replace the node, which evicts its pods.",
        )
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
