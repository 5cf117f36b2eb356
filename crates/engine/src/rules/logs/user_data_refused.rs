//! The machine's log says that a program rejected the user data.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "UserDataRefused",
    summary: "nodeadm, Bottlerocket or cloud-init logged that it rejects the user data, so no kubelet is configured",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/UserDataRefused.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::UserDataRefused]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix("Correct the part of the user data that the line names. New nodes get the change, this one does not.")
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
