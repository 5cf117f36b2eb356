//! The machine's log says that it cannot pull an image that it needs.

use crate::explain::logged;
use crate::explain::pull;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: MachinePullsNoImage,
    summary: "The machine logged that it cannot pull an image that it needs to become a node",
    stages: [Join, Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::ImagePullFails])?;
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
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case));
    let blame = if is_provider { case.class().map(Blame::class) } else { root.user_data(case) };
    finding.blaming(blame).into()
}
