//! The machine's log says that a program rejected the user data.

use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: UserDataRefused,
    summary: "nodeadm, Bottlerocket or cloud-init logged that it rejects the user data, so no kubelet is configured",
    stages: [Join],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::UserDataRefused])?;
    let finding = root
        .finding(case)
        .fix("Correct the part of the user data that the line names. New nodes get the change, this one does not.")
        .inspect("Read the whole console", logged::command(case));
    finding.blaming(root.user_data(case)).into()
}
