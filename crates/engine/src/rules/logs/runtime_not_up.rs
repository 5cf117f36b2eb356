//! The machine's log says that the container runtime does not answer.

use crate::explain::{agent_chain, commands, logged, repair, selinux};
use crate::rules::prelude::*;
use logs::fact::{Phase, Trouble};

rule! {
    cause: RuntimeNotUp,
    summary: "containerd does not run when it is needed, or runs and can start no container",
    stages: [Join, Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::RuntimeNotUp])?;
    let fix = if root.says(WITHOUT_SIZE) {
        "Match the runtime and its CRI server on the node: cri-dockerd reads the sizes of Docker 25 and later from \
         0.3.10 on. Install matching versions in the image or in user data, or use containerd. Then replace the node."
    } else if root.fact.names.get("status").is_some_and(|status| status == "127") {
        agent_chain::LIBRARY_OF_RUNC
    } else if root.fact.blocks == Phase::Ready {
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
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case));
    let finding = match case.class() {
        Some(class) => finding.change(
            "Correct the user data, or select another image. Only new nodes get the change",
            commands::edit(class),
        ),
        None => finding,
    };
    repair::or_replace(case, finding.blaming(blamed)).into()
}
/// Source: kubernetes v1.29.7 pkg/kubelet/cri/remote/remote_image.go; Mirantis/cri-dockerd#299.
const WITHOUT_SIZE: &str = "Id or size of image";
