//! The kubelet's log says that it rejects its flags or its configuration.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "KubeletRefusesConfiguration",
    summary: "The kubelet logged that it rejects a flag, a label or its configuration, and exited",
    stages: &[Stage::Join, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/KubeletRefusesConfiguration.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::KubeletRefusesConfiguration]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix(
            "Remove or correct the setting that the line names, in the user data or in the image's own configuration \
             of the kubelet. New nodes get the change.",
        )
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
