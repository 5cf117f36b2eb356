//! A log says that IAM denies a call that the machine, the network plugin or Karpenter has to make.

use crate::api::{Blame, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "AwsRefusesMachine",
    summary: "The machine, its network plugin or Karpenter logged that AWS denies a call",
    stages: &[Stage::Launch, Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready, Stage::Terminate],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/AwsRefusesMachine.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::AwsRefuses]) else { return Opinion::Silent };
    let finding = root
        .finding(case)
        .fix("Allow the call that the line names: in the policy of the role that makes it, or in that role's trust policy.")
        .step(Risk::Inspect, "See who calls what: the denial names both", logged::command(case));
    match case.class().and_then(|class| class.spec.role.as_deref()).filter(|_| root.fact.program != "karpenter") {
        Some(role) => finding.blaming(Blame::object("", "IAMRole", role)).into(),
        None => finding.into(),
    }
}
