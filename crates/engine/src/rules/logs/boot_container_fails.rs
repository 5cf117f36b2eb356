//! The console says that a container or command failed that must succeed before Bottlerocket continues.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "BootContainerFails",
    summary: "An essential Bottlerocket bootstrap container or command failed, so the boot stops before the kubelet",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/BootContainerFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::BootContainerFailed]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix(
            "Correct the bootstrap command, or the bootstrap container's source or its program. Or set essential = \
             false for it if your nodes do not need it. Only new nodes get the change.",
        )
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
