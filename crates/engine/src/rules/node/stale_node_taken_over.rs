//! The machine's kubelet uses the Node object of a machine that is gone.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim};
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "StaleNodeTakenOver",
    summary: "A Node of the same name was left over with another providerID, and the kubelet uses it instead of creating its own",
    stages: &[Stage::Join, Stage::Register],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses, Input::Events, Input::CertificateSigningRequests],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/StaleNodeTakenOver.md"),
    check,
};

/// A trace of the new kubelet on the old Node.
struct Trace<'c> {
    node: &'c Node,
    proof: crate::api::Evidence,
    certain: bool,
}

fn check(case: &Case) -> Opinion {
    match (case.claim, case.node) {
        (Some(claim), _) => by(case, claim),
        (None, Some(node)) if case.stage() == Stage::Register => {
            taker(case, node).map_or(Opinion::Silent, |claim| by(case, claim))
        }
        _ => Opinion::Silent,
    }
}

/// For a left-over Node that is Ready again though its own machine is gone: the NodeClaim that waits for its Node.
fn taker<'w>(case: &Case<'w>, node: &Node) -> Option<&'w NodeClaim> {
    let revived = node.condition("Ready").filter(|c| c.is_true())?.last_transition_time?;
    let waits = |claim: &&NodeClaim| !claim.is_true("Registered") && claim.metadata.deletion_timestamp.is_none();
    let launched = |claim: &&NodeClaim| {
        claim.true_since("Launched").is_some_and(|at| at < revived && node.metadata.creation_timestamp < Some(at))
    };
    case.cluster.claims().filter(waits).filter(launched).find(|claim| trace(case, claim, node).is_some())
}

fn by(case: &Case, claim: &NodeClaim) -> Opinion {
    let Some(launched) = claim.true_since("Launched").filter(|_| !claim.is_true("Registered")) else {
        return Opinion::Silent;
    };
    let orphans = case.cluster.nodes_left_over().filter(|n| n.metadata.creation_timestamp < Some(launched));
    let traces: Vec<Trace> = orphans.filter_map(|node| trace(case, claim, node)).collect();
    let Some(trace) = traces.iter().max_by_key(|t| t.certain) else {
        return Opinion::Silent;
    };
    let waiting = case
        .class_members()
        .is_some_and(|class_members| class_members.launched_in_vain().any(|(_, name)| name != claim.name()));
    let confidence = match (trace.certain, traces.len() > 1 || waiting) {
        (true, _) => Confidence::Certain,
        (false, false) => Confidence::Likely,
        (false, true) => Confidence::Possible,
    };
    let name = trace.node.name();
    let id = &trace.node.spec.provider_id;
    Finding::new(
        confidence,
        format!(
            "The kubelet of NodeClaim {} uses Node {name}, left by an earlier machine with providerID {id}, so Karpenter never sees a Node with this machine's id.",
            claim.name()
        ),
        Evidence::new(format!("Node/{name}"), "spec.providerID", id.clone(), "it cannot be changed, and Karpenter matches NodeClaim and Node by it"),
    )
    .with(trace.proof.clone())
    .blaming(Blame::object("v1", "Node", name).field("spec.providerID"))
    .fix("Delete the stale Node (not the NodeClaim). The kubelet creates its own within seconds.")
    .step(Risk::Inspect, "Check that the Node's instance is gone", trace.node.spec.provider_id.rsplit('/').next().map(|i| format!("aws ec2 describe-instances --instance-ids {i} --query 'Reservations[].Instances[].State.Name'")))
    .step(Risk::Destructive, "Delete the stale Node", Some(format!("kubectl delete node {name}")))
    .into()
}

fn trace<'c>(case: &Case<'c>, claim: &NodeClaim, node: &'c Node) -> Option<Trace<'c>> {
    let launched = claim.true_since("Launched");
    // The session name of instance-profile credentials is the instance's id.
    // Source: aws-iam-authenticator @81b1dab pkg/server/server.go.
    let user = format!("system:node:{}", node.name());
    let csr = case
        .cluster
        .csrs()
        .find(|c| c.spec.username == user && c.instance_id().is_some() && c.instance_id() == claim.instance_id());
    if let Some(csr) = csr {
        let because = "this machine's instance requested a certificate under the old Node's name";
        let proof = Evidence::new(
            format!("CertificateSigningRequest/{}", csr.metadata.name),
            "spec.extra.sessionName",
            claim.instance_id()?,
            because,
        );
        return Some(Trace { node, proof, certain: true });
    }
    let same =
        |key: &str| node.metadata.label(key).is_none_or(|v| claim.metadata.label(key).is_none_or(|own| own == v));
    if !same("topology.kubernetes.io/zone") {
        return None;
    }
    let revived = node.condition("Ready").filter(|c| c.is_true() && c.last_transition_time > launched)?;
    // A kubelet that finds another boot id on its Node says Rebooted.
    // Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `updateNodeStatus`, cmd/kubelet/app/server.go.
    let started =
        |e: &&crate::objects::Event| matches!(e.reason.as_str(), "Starting" | "Rebooted") && e.reporter() == "kubelet";
    let started = case.cluster.events("Node", node.name()).find(|e| started(e) && e.last_seen() > launched)?;
    let because = format!(
        "a kubelet started under this name after the launch, and the Node is Ready again ({})",
        revived.shown()
    );
    Some(Trace {
        node,
        proof: Evidence::new(format!("Event/{}", started.metadata.name), "message", started.said(), because),
        certain: false,
    })
}
