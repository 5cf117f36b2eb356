//! The machine's Node exists, but has no providerID by which Karpenter could match it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim};
use crate::rules::Rule;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;

pub static RULE: Rule = Rule {
    cause: "NodeWithoutProviderID",
    summary: "A Node joined without a providerID, so Karpenter cannot match it to its NodeClaim",
    stages: &[Stage::Join, Stage::Register],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodeWithoutProviderID.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let launched = case.claim.and_then(|c| c.true_since("Launched"));
    let candidates: Vec<&Node> = match (case.node, case.claim) {
        // A Node that waits for Karpenter and has no claim: it is its own candidate.
        (Some(node), None) => vec![node].into_iter().filter(|n| n.spec.provider_id.is_empty()).collect(),
        (None, Some(claim)) => case
            .cluster
            .nodes_without_provider_id()
            .filter(|n| n.metadata.creation_timestamp >= launched && fits(n, claim))
            // A resource name is another instance's where it is not this one's.
            .filter(|n| !n.name().starts_with("i-") || claim.instance_id().is_some_and(|id| n.name().contains(id)))
            .collect(),
        _ => return Opinion::Silent,
    };
    let [node, others @ ..] = candidates.as_slice() else {
        return Opinion::Silent;
    };
    // The cloud controller may only be about to set it.
    let settled = node.metadata.creation_timestamp.and_then(|at| at.checked_add_signed(case.wait.proven));
    if let Some(at) = settled.filter(|at| case.now < *at) {
        return Opinion::LookAgain(at);
    }
    let instance = case.claim.and_then(|c| c.instance_id());
    // Resource-name hosts carry the instance id; else it can only be told apart where it is the only one.
    let named = instance.is_some_and(|id| node.name().contains(id));
    let waits = |c: &&NodeClaim| c.is_true("Launched") && !c.is_true("Registered") && fits(node, c);
    let rivals = case
        .siblings()
        .filter(waits)
        .any(|c| case.cluster.nodes_with_provider_id(&c.status.provider_id).next().is_none());
    let confidence = if named || case.claim.is_none() {
        Confidence::Certain
    } else if others.is_empty() && !rivals {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let name = node.name();
    let summary = format!(
        "Node {name} joined without spec.providerID, so Karpenter cannot match it to {}: the cloud controller has not found its instance.",
        case.claim.map_or_else(|| "its NodeClaim".to_owned(), |c| format!("NodeClaim {}", c.name()))
    );
    let object = format!("Node/{name}");
    let mut finding = Finding::new(
        confidence,
        summary,
        Evidence::new(&object, "spec.providerID", "empty", "Karpenter matches NodeClaim and Node by this id; the cloud controller or the bootstrap sets it"),
    )
    .blaming(Blame::object("v1", "Node", name).field("spec.providerID"))
    .fix("Make the Node's name the instance's private DNS name (DHCP options, hostname override), so that the cloud controller finds the instance. This affects new machines.")
    .step(Risk::Inspect, "Compare the Node's name with the instance's private DNS name", instance.map(|id| format!("aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].PrivateDnsName'")));
    finding = finding.step(
        Risk::Inspect,
        "See the Node's name and addresses",
        Some(format!("kubectl get node {name} -o yaml")),
    );
    if node.taint(UNINITIALIZED_TAINT).is_some() {
        finding = finding.with(Evidence::new(
            object,
            "spec.taints",
            UNINITIALIZED_TAINT,
            "the cloud controller has not initialized this Node",
        ));
    }
    finding.into()
}

/// Whether the Node could be this NodeClaim's machine: its pool label, if any, is the NodeClaim's.
fn fits(node: &Node, claim: &NodeClaim) -> bool {
    let same =
        |key: &str| node.metadata.label(key).is_none_or(|v| claim.metadata.label(key).is_none_or(|own| own == v));
    node.metadata.label("eks.amazonaws.com/nodegroup").is_none()
        && same("karpenter.sh/nodepool")
        && same("topology.kubernetes.io/zone")
}
