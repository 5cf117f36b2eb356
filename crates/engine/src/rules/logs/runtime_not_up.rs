//! The machine's log says that the container runtime does not answer.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "RuntimeNotUp",
    summary: "containerd does not run when it is needed: it rejects its configuration, or nodeadm or the kubelet does not wait for it",
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
        .fix("If containerd rejects its configuration, correct that. If it is only slow, use an image whose nodeadm waits for it. Then replace the machine.")
        .step(Risk::Inspect, "Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
