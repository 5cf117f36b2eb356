//! The machine's log says that the container runtime does not answer.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::{commands, logged, repair, selinux};
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::{Phase, Trouble};

pub static RULE: Rule = Rule {
    cause: "RuntimeNotUp",
    summary: "containerd does not run when it is needed, or runs and can start no container",
    stages: &[Stage::Join, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/RuntimeNotUp.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::RuntimeNotUp]) else { return Opinion::Silent };
    let fix = if root.fact.blocks == Phase::Ready {
        "Correct what keeps runc from starting a process, in the node's image or in its user data. For example, \
         SELinux in enforcing mode needs the policy of the package container-selinux. Then replace the node."
    } else {
        "If containerd rejects its configuration, correct that. If it is only slow, use an image whose nodeadm waits \
         for it. Then replace the machine."
    };
    let (fix, blamed) = match root.selinux_refusal() {
        Some(_) => selinux::fix(case),
        None => (fix, root.user_data(case)),
    };
    let finding = root.finding(case).fix(fix).step(Risk::Inspect, "Read the whole console", logged::command(case));
    let finding = match case.class() {
        Some(class) => finding.step(
            Risk::Mutating,
            "Correct the user data, or select another image. Only new nodes get the change",
            Some(commands::edit(class)),
        ),
        None => finding,
    };
    repair::or_replace(case, finding.blaming(blamed)).into()
}
