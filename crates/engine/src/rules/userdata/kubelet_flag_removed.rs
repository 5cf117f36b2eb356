//! userData passes the kubelet a flag that its version does not know any more: it exits, and no Node ever appears.

use crate::explain::kubelet_exit::{FatalSetting, KubeletStart};
use crate::rules::prelude::*;

rule! {
    cause: KubeletFlagRemoved,
    summary: "userData passes a kubelet flag that this Kubernetes version has removed, over which the kubelet exits",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses],
    versions: "Kubernetes 1.24, 1.26, 1.27, 1.30, 1.31, 1.34, 1.35, 1.37 and later, by flag",
}

fn check(case: &Case) -> Option<Opinion> {
    let start = KubeletStart::of(case)?;
    let (argument, since) = start.user_data.removed_flags(start.kubelet.minor).next()?;
    let flag = argument.name();
    let setting = FatalSetting {
        span: argument.span,
        is_exact: argument.is_certain_of(flag),
        since,
        does: format!("passes --{flag}, which Kubernetes 1.{since} removed: the kubelet exits over the unknown flag"),
        error: format!("failed to parse kubelet flag: unknown flag: --{flag}"),
        fix: format!("Take --{flag} out of userData. containerd and the VPC CNI need none of these flags."),
        step: "Remove the flag. New nodes will be correct",
    };
    start.ends_over(case, setting)
}
