//! The kubelet's log says that the API server does not let it in.

use crate::api::{Blame, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::commands;
use crate::rules::shared::logged;
use crate::rules::shared::node_role;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "KubeletTurnedAway",
    summary: "The kubelet or Karpenter logged that the API server refuses it: not authenticated, not authorized, or refused by a webhook",
    stages: &[Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::Pods, Input::Logs],
    lint: false,
    versions: "all; seen only with --logs",
    page: include_str!("../../../pages/KubeletTurnedAway.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::Unauthorized, Trouble::Forbidden, Trouble::AdmissionRefuses]) else {
        return Opinion::Silent;
    };
    let (fix, risk, text, command) = match root.fact.trouble {
        Trouble::AdmissionRefuses => (
            "Exempt Nodes, kubelets and Karpenter from the webhook or policy that the line names, or give the Nodes what it asks for.",
            Risk::Inspect,
            "See which webhooks and policies there are",
            "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml".to_owned(),
        ),
        Trouble::Forbidden => (
            "Let the node role's entry have the groups system:bootstrappers and system:nodes, and the username of the Node's name.",
            Risk::Mutating,
            "Correct the entry in aws-auth, where the cluster reads it",
            commands::EDIT_AWS_AUTH.to_owned(),
        ),
        _ => (
            "Map the node role in aws-auth, or make an access entry of type EC2_LINUX (EC2_WINDOWS) for it.",
            Risk::Mutating,
            "Correct the entry in aws-auth, where the cluster reads it",
            commands::EDIT_AWS_AUTH.to_owned(),
        ),
    };
    let finding = root.finding(case).fix(fix).step(risk, text, command).step(
        Risk::Inspect,
        "Read the whole console",
        logged::command(case),
    );
    let role = node_role::name(case).filter(|_| root.fact.trouble != Trouble::AdmissionRefuses);
    match role {
        Some(role) => finding
            .with(Evidence::new(case.class_object().unwrap_or_default(), "spec.role", role, "the role of the machines"))
            .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
            .into(),
        None => finding.into(),
    }
}
