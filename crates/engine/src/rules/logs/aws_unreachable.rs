//! The machine's log says that AWS or the instance's metadata service gives no answer.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "AwsUnreachable",
    summary: "The machine logged that it does not reach EC2, EKS, ECR or its own metadata service",
    stages: &[Stage::Join, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/AwsUnreachable.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::AwsUnreachable, Trouble::NoMetadata]) else {
        return Opinion::Silent;
    };
    let fix = if root.fact.trouble == Trouble::NoMetadata {
        "Let the machine reach its metadata service: httpEndpoint, httpTokens and hop limit of the node class, and what firewalls in user data do to 169.254.169.254."
    } else {
        "Give the machine's subnet a way to AWS: a route to a NAT gateway, or VPC endpoints whose security groups admit the machine."
    };
    let finding = root.finding(case).fix(fix).step(Risk::Inspect, "Read the whole console", logged::command(case));
    let blame = match root.fact.trouble {
        Trouble::NoMetadata => root.user_data(case),
        // Of the way to AWS the cluster has only the choice of the subnet.
        _ => case.class_field("spec.subnetSelectorTerms"),
    };
    finding.blaming(blame).into()
}
