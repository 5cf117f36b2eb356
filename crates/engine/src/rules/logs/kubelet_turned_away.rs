//! The kubelet's log says that the API server does not let it in.

use crate::api::{Blame, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged::{self, Root};
use crate::rules::shared::{access_entry, aws_auth_role, commands, node_role};
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "KubeletTurnedAway",
    summary: "The kubelet or Karpenter logged that the API server refuses it: not authenticated, not authorized, or refused by a webhook",
    stages: &[Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready],
    reads: &[
        Input::Nodes,
        Input::NodeClasses,
        Input::AwsAuth,
        Input::CertificateSigningRequests,
        Input::Pods,
        Input::Deployments,
        Input::AwsObservations,
        Input::Logs,
    ],
    lint: false,
    versions: "all; seen only in logs",
    page: include_str!("../../../pages/KubeletTurnedAway.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(root) = logged::root(case, &[Trouble::Unauthorized, Trouble::Forbidden, Trouble::AdmissionRefuses]) else {
        return Opinion::Silent;
    };
    let finding = if root.fact.trouble == Trouble::AdmissionRefuses {
        root.finding(case)
            .fix("Exempt Nodes, kubelets and Karpenter from the webhook or policy that the line names, or give the Nodes what it asks for.")
            .step(
                Risk::Inspect,
                "See which webhooks and policies there are",
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies -o yaml".to_owned(),
            )
    } else {
        let_in(case, &root)
    };
    finding.step(Risk::Inspect, "Read the whole console", logged::command(case)).into()
}

/// Who lets the node role in: aws-auth, access entries, or both. The log does not tell, and to correct what is not read
/// helps nobody.
fn let_in(case: &Case, root: &Root<'_>) -> Finding {
    let type_ = access_entry::type_for(case);
    let is_forbidden = root.fact.trouble == Trouble::Forbidden;
    let entry = if is_forbidden {
        "Let the node role's entry in aws-auth have the groups system:bootstrappers and system:nodes, and the username of the Node's name".to_owned()
    } else {
        "Map the node role in aws-auth".to_owned()
    };
    let or_entry = format!("an access entry of type {type_}");
    let correct = (Risk::Mutating, "Correct the entry in aws-auth", commands::EDIT_AWS_AUTH.to_owned());
    let (is_read, mapped) = (aws_auth_role::is_read(case), aws_auth_role::mapped(case));
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    let finding = root.finding(case).with_all(node_role::name(case).map(|role| {
        Evidence::new(case.class_object().unwrap_or_default(), "spec.role", role, "the role of the machines")
    }));
    let ask = |finding: Finding| {
        finding.ask_aws(
            "Does the cluster go by aws-auth, by access entries, or by both?",
            format!(
                "aws eks describe-cluster --name {cluster} --query cluster.accessConfig.authenticationMode --output text"
            ),
        )
    };
    match (is_read, mapped) {
        (Some(false), _) => finding
            .fix(format!("Give the node role {or_entry}: aws-auth does not count here."))
            .step(Risk::Inspect, "See which roles have one", format!("aws eks list-access-entries --cluster-name {cluster} --output text")),
        (_, Some(role)) => ask(finding
            .fix(format!("aws-auth makes a node of {role} by now: see whether an access entry of {role} says otherwise, and whether the machine has that role."))
            .step(Risk::Inspect, "See who the machine is to AWS", case.instance_id().map(|id| format!("aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].IamInstanceProfile.Arn' --output text")))),
        (Some(true), None) => {
            let (risk, text, command) = correct;
            finding
                .fix(format!("{entry}."))
                .step(risk, text, command)
                .blaming(Blame::object("v1", "ConfigMap", "aws-auth").namespace("kube-system").field("data.mapRoles"))
        }
        (None, None) => {
            let (risk, text, command) = correct;
            ask(finding.fix(format!("{entry}, where the cluster goes by it; else make {or_entry} for the role.")))
                .step(risk, format!("{text}, where the cluster goes by it"), command)
        }
    }
}
