//! The VPC CNI's log says why pods get no network.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "NetworkPluginFails",
    summary: "ipamd logged why the network plugin does not come up, or gets no addresses",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/NetworkPluginFails.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::CniFails]) else { return Opinion::Silent };
    root.finding(case)
        .fix("Correct what the line names: free addresses of the subnet, the ENIConfig, the version of aws-node, or the subnets' tags.")
        .step(
            Risk::Inspect,
            "See what else aws-node says on this machine",
            case.node.map(|node| format!("kubectl get pods -n kube-system -o wide --field-selector spec.nodeName={}", node.name())),
        )
        .into()
}
