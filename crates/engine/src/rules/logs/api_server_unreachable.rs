//! The kubelet's log says that it does not reach the API server.

use crate::api::{Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::{Reason, Trouble};

pub static RULE: Rule = Rule {
    cause: "ApiServerUnreachable",
    summary: "The kubelet logged that it does not reach the API server: the name, the route or a firewall",
    stages: &[Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::Deployments, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/ApiServerUnreachable.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::ApiServerUnreachable]) else { return Opinion::Silent };
    let fix = if root.is_because(&[Reason::NameNotFound]) {
        "Let the machine resolve the endpoint's name: DNS support and DHCP options of the VPC, and custom name servers, which have to ask the VPC's."
    } else {
        "Open the way from the machine to the endpoint: security groups of machine and control plane (443), network ACLs, routes, and the addresses that a public endpoint admits."
    };
    root.finding(case)
        .fix(fix)
        .step(Risk::Inspect, "Read the whole console", logged::command(case))
        .ask_aws(
            "Which rules, routes and name servers does the machine's subnet have (AWS's own runbook)?",
            format!(
                "aws ssm start-automation-execution --document-name AWSSupport-TroubleshootEKSWorkerNode --parameters ClusterName={},WorkerID={}",
                case.cluster_name().unwrap_or("CLUSTER"),
                case.instance_id().unwrap_or("INSTANCE")
            ),
        )
        .into()
}
