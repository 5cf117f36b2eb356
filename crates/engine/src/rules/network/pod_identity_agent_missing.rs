//! The VPC CNI gets its permissions through EKS Pod Identity, but the Pod Identity agent does not run on the Node.

use crate::explain::agent_chain::{of_pod, without_pod};
use crate::explain::logged::{self, Root};
use crate::explain::pull;
use crate::facts::network_plugin::symptom;
use crate::objects::{Node, Pod};
use crate::rules::prelude::*;
use crate::upstream::credentials::{Credentials, POD_IDENTITY_AGENT as AGENT};
use crate::upstream::vpc_cni;
use logs::fact::Trouble;

rule! {
    cause: PodIdentityAgentMissing,
    summary: "The VPC CNI gets its permissions through Pod Identity, but the Pod Identity agent does not run on the \
              Node",
    stages: [Initialize, Ready],
    reads: [NodeClaims, Nodes, NodeClasses, Events, Pods, DaemonSets, Logs],
    versions: "VPC CNI 1.15.5 and later, with EKS Pod Identity",
}

fn check(case: &Case) -> Option<Opinion> {
    let logged = logged::root(case, &[Trouble::IdentityAgentFails]);
    let (Some(node), Some(pod)) =
        (case.node, case.pods().find(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE) && !p.is_ready()))
    else {
        return logged.and_then(|logged| silent(case, &logged));
    };
    let Some(ready) = vpc_cni::not_ready(node) else { return of_ready_node(case, node, pod) };
    if logged.is_none() && Credentials::of(pod) != Credentials::PodIdentity {
        return None;
    }
    let agent = case.pods().find(|p| p.daemon_set() == Some(AGENT));
    if let Some(agent) = agent.filter(|agent| agent.is_ready()) {
        return match logged {
            Some(logged) => silent(case, &logged),
            None => Some(Opinion::ruled_out(agent, format!("the Pod Identity agent runs on Node {}", node.name()))),
        };
    }
    let head = format!(
        "Node {} has been NotReady since {}: the VPC CNI gets its permissions from the Pod Identity agent, and",
        node.name(),
        case.since()
    );
    let evidence = logged.as_ref().map_or_else(|| of_env(pod), Root::evidence);
    if agent.is_none() && !is_installed(case) {
        if case.cluster.missing(Input::DaemonSets).is_some() {
            return None;
        }
        let confidence = if case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
        return not_installed(Finding::new(confidence, format!("{head} it is not installed."), evidence));
    }
    let explanation = agent.map_or_else(|| without_pod(case, node, AGENT), |agent| of_pod(case, node, agent));
    let why = explanation.why.trim_end_matches('.');
    let summary = match &logged {
        Some(logged) if !why.contains(logged.line()) => format!("{head} {why}. {}", logged.quote()),
        _ => format!("{head} {why}."),
    };
    let proven = logged.as_ref().filter(|logged| logged.fact.ends).map(Root::confidence);
    let confidence = proven.unwrap_or(Confidence::Possible).max(explanation.confidence(case));
    let finding = Finding::new(confidence, summary, evidence);
    let symptom = symptom(node, ready);
    let waits = Link::new(format!("Pod/{}", pod.metadata.name), "it gets its credentials from the Pod Identity agent");
    explanation.after(waits).explain(finding, symptom).inspect("See the agent", see()).into()
}

fn is_installed(case: &Case) -> bool {
    case.cluster.daemon_sets().any(|d| d.metadata.name == *AGENT)
}

fn of_env(pod: &Pod) -> Evidence {
    Evidence::new(
        format!("Pod/{}", pod.metadata.name),
        "spec.containers[0].env",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "its credentials come only from the agent on the same Node",
    )
}

fn see() -> String {
    format!("kubectl get daemonset,pods -n kube-system -o wide -l app.kubernetes.io/name={AGENT}")
}

fn not_installed(finding: Finding) -> Option<Opinion> {
    finding
        .blaming(Blame::object("apps/v1", "DaemonSet", AGENT).namespace("kube-system"))
        .fix(
            "Install the add-on eks-pod-identity-agent before the nodes (Terraform: before_compute = true), or give \
             aws-node its role through IRSA. Neither disrupts working nodes.",
        )
        .inspect("See the agent", see())
        .into()
}

/// The Node stays Ready with the network configuration of the earlier aws-node, but an update of aws-node needs the
/// agent, so no new pod gets a network. No message says why aws-node fails, so this is not certain.
/// Source: aws/amazon-vpc-cni-k8s#3840.
fn of_ready_node(case: &Case, node: &Node, pod: &Pod) -> Option<Opinion> {
    if !node.is_ready() || case.wait.symptom != Symptom::PodsRefused {
        return None;
    }
    let fails = pod.trouble().is_some_and(|(_, why)| pull::explain(&why).is_none());
    let is_absent = !is_installed(case) && case.cluster.missing(Input::DaemonSets).is_none();
    let has_agent = case.pods().any(|p| p.daemon_set() == Some(AGENT));
    if !fails || !is_absent || has_agent || Credentials::of(pod) != Credentials::PodIdentity {
        return None;
    }
    let summary = format!(
        "Node {} has started no pod with a network of its own since {}: pod {} of the VPC CNI fails. It gets its \
         permissions from the Pod Identity agent, and the agent is not installed.",
        node.name(),
        case.since(),
        pod.metadata.name
    );
    not_installed(Finding::new(Confidence::Likely, summary, of_env(pod)))
}

/// The logs show an agent that gives no credentials, but no pod of it shows that.
fn silent(case: &Case, logged: &Root) -> Option<Opinion> {
    logged
        .finding(case)
        .blaming(Blame::object("apps/v1", "DaemonSet", AGENT).namespace("kube-system"))
        .fix(
            "Read what the agent logs on this node, and check whether a network policy or a proxy keeps its pods from \
             169.254.170.23.",
        )
        .inspect(
            "Read the agent's log",
            format!("kubectl logs -n kube-system -l app.kubernetes.io/name={AGENT} --tail=50"),
        )
        .into()
}
