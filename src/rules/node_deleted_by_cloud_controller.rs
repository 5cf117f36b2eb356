//! The cloud controller deleted the Node, and the instance is still there.

use super::Rule;
use super::unknown::ask_the_instance;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "NodeDeletedByCloudController",
    summary: "The cloud controller deleted the Node because it did not find its instance, and the machine lives on without a Node",
    stages: &[Stage::Ready],
    reads: &[Input::NodeClaims, Input::Nodes, Input::Events],
    versions: "all",
    page: include_str!("../../docs/causes/NodeDeletedByCloudController.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(claim), None) = (case.claim, case.node) else { return Opinion::Silent };
    if !case.wait.evidence.observed.contains("does not exist in the cloud provider") {
        return Opinion::Silent;
    }
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "The cloud controller deleted Node {} at {} because it did not find its instance; NodeClaim {} and, by Karpenter's reckoning, the instance {} are still there.",
            claim.status.node_name,
            case.since(),
            claim.name(),
            claim.instance_id().unwrap_or("of it")
        ),
        case.wait.evidence.clone(),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()))
    .fix("Delete the NodeClaim: a running kubelet does not make its Node anew. If it happens again, see whether the Node's name is the instance's private DNS name and whether the cluster role may call ec2:DescribeInstances.")
    .step(Risk::Destructive, "Replace the machine", Some(format!("kubectl delete nodeclaim {}", claim.name())));
    ask_the_instance(case, finding).into()
}
