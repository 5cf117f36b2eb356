//! The VPC CNI gets its permissions by EKS Pod Identity, and the agent that hands them out does not run on the Node.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::commands;
use crate::upstream::credentials::Credentials;
use crate::upstream::vpc_cni;

pub static RULE: Rule = Rule {
    cause: "PodIdentityAgentMissing",
    summary: "The VPC CNI gets its permissions by Pod Identity, and the Pod Identity agent does not run on the Node",
    stages: &[Stage::Initialize, Stage::Ready],
    reads: &[Input::Pods, Input::DaemonSets],
    lint: false,
    versions: "VPC CNI 1.15.5 and later, with EKS Pod Identity",
    page: include_str!("../../../pages/PodIdentityAgentMissing.md"),
    check,
};

/// aws/eks-pod-identity-agent v0.1 charts/eks-pod-identity-agent.
const AGENT: &str = "eks-pod-identity-agent";

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|n| vpc_cni::not_ready(n).is_some()) else { return Opinion::Silent };
    let Some(pod) = case.pods().find(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE) && !p.is_ready()) else {
        return Opinion::Silent;
    };
    if Credentials::of(pod) != Credentials::PodIdentity {
        return Opinion::Silent;
    }
    let agent = case.pods().find(|p| p.daemon_set() == Some(AGENT));
    if let Some(agent) = agent.filter(|agent| agent.is_ready()) {
        return Opinion::ruled_out(agent, format!("the Pod Identity agent runs on Node {}", node.name()));
    }
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == AGENT);
    let blame = Blame::object("apps/v1", "DaemonSet", AGENT).namespace("kube-system");
    let overdue = if case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    let refused =
        set.and_then(|set| node.spec.taints.iter().find(|t| t.effect != "PreferNoSchedule" && !set.tolerates(t)));
    let (confidence, why, blame, fix) = match (agent, set, refused) {
        (Some(agent), ..) => {
            let trouble = agent
                .trouble()
                .map_or_else(|| "not Ready".to_owned(), |(container, why)| format!("container {container}: {why}"));
            (
                overdue,
                format!("its pod {} fails there ({trouble})", agent.metadata.name),
                blame,
                "Get the agent's pod running on the Node; the VPC CNI follows.",
            )
        }
        (None, Some(_), Some(taint)) => (
            Confidence::Certain,
            format!("DaemonSet {AGENT} does not tolerate the Node's taint {taint}"),
            blame.field("spec.template.spec.tolerations"),
            "Let the agent tolerate every taint (operator: Exists), as its add-on does by default.",
        ),
        (None, Some(_), None) => (
            Confidence::Likely,
            format!("DaemonSet {AGENT} has no pod there"),
            blame,
            "Find out why the DaemonSet makes no pod there.",
        ),
        (None, None, _) if case.cluster.missing(Input::DaemonSets).is_some() => return Opinion::Silent,
        (None, None, _) => (
            overdue,
            "it is not installed".to_owned(),
            blame,
            "Install the add-on eks-pod-identity-agent before the Nodes (Terraform: before_compute = true), or give aws-node its role by IRSA.",
        ),
    };
    let tolerate = set.zip(refused).filter(|_| agent.is_none()).map(|(set, taint)| commands::tolerate(set, taint));
    let finding = Finding::new(
        confidence,
        format!(
            "Node {} has been NotReady since {}: the VPC CNI gets its permissions from the Pod Identity agent, and {why}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            format!("Pod/{}", pod.metadata.name),
            "spec.containers[0].env",
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "its credentials come from the agent on the same Node, and from nowhere else",
        ),
    )
    .blaming(blame)
    .fix(fix)
    .step(
        Risk::Inspect,
        "See the agent",
        Some(format!("kubectl get daemonset,pods -n kube-system -o wide -l app.kubernetes.io/name={AGENT}")),
    );
    match tolerate {
        Some(command) => {
            finding.step(Risk::Mutating, "Add the toleration; the DaemonSet's pods restart", Some(command)).into()
        }
        None => finding.into(),
    }
}
