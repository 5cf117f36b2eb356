//! The machine's log says that it cannot pull an image that it needs.

use crate::api::{Blame, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::logged;
use crate::explain::pull;
use crate::objects::input::Input;
use crate::rules::Rule;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "MachinePullsNoImage",
    summary: "The machine logged that it cannot pull an image that it needs to become a node",
    stages: &[Stage::Join, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/MachinePullsNoImage.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::ImagePullFails]) else { return Opinion::Silent };
    // containerd's error stands in quotes of the line around it.
    let line = root.line().replace("\\\"", "\"");
    // The kubelet does not say why the program fails: the class holds the image, the role and the subnets.
    let is_provider = root.fact.names.contains_key("provider");
    // A layer came from the registry, so no way there and no permission is missing.
    let fix = if is_provider {
        pull::PROVIDER_FAILS
    } else if root.fact.names.contains_key("layer") {
        "Allow containerd to write the files of images, in the node's image or in its user data: with a rule of \
         fapolicyd or of another application control, or with the SELinux policy of the package container-selinux. The \
         node's journal shows which of them runs. Then replace the node."
    } else {
        pull::meaning(&line).fix
    };
    let finding = root.finding(case).fix(fix).step(Risk::Inspect, "Read the whole console", logged::command(case));
    let blame = if is_provider { case.class().map(Blame::class) } else { root.user_data(case) };
    finding.blaming(blame).into()
}
