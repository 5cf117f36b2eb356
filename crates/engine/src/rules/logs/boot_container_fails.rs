//! The console says that a container or command failed that must succeed before Bottlerocket continues.

use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: BootContainerFails,
    summary: "An essential Bottlerocket bootstrap container or command failed, so the boot stops before the kubelet",
    stages: [Join],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::BootContainerFailed])?;
    let finding = root
        .finding(case)
        .fix(
            "Correct the bootstrap command, or the bootstrap container's source or its program. Or set essential = \
             false for it if your nodes do not need it. Only new nodes get the change.",
        )
        .inspect("Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
