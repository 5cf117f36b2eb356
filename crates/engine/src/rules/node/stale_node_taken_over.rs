//! The machine's kubelet uses the Node object of a machine that is gone.

use crate::cluster_state::memo::Memo;
use crate::objects::{Event, Node, NodeClaim};
use crate::rules::prelude::*;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

rule! {
    cause: StaleNodeTakenOver,
    summary: "A Node of the same name was left over with another providerID, and the kubelet uses it instead of \
              creating its own",
    stages: [Join, Register],
    reads: [Nodes, NodeClaims, NodeClasses, Events, CertificateSigningRequests],
    versions: "all",
}

/// A trace of the new kubelet on the old Node.
struct Trace<'c> {
    node: &'c Node,
    proof: crate::api::Evidence,
    certain: bool,
}

fn check(case: &Case) -> Option<Opinion> {
    match (case.claim, case.node) {
        (Some(claim), _) => by(case, claim),
        (None, Some(node)) if case.stage() == Stage::Register => taker(case, node).and_then(|claim| by(case, claim)),
        _ => None,
    }
}

/// For a left-over Node that is Ready again though its own machine is gone: the NodeClaim that waits for its Node.
fn taker<'w>(case: &Case<'w>, node: &Node) -> Option<&'w NodeClaim> {
    static WAITING: Memo<BTreeMap<String, DateTime<Utc>>> = Memo::new("launches of claims that wait for a Node");
    let revived = node.condition("Ready").filter(|c| c.is_true())?.last_transition_time?;
    let left = LeftOver::of(case);
    if !left.names.contains(node.name()) {
        return None;
    }
    let waiting = case.cluster.once(&WAITING, "", || {
        let waits = |claim: &&NodeClaim| !claim.is_true("Registered") && claim.metadata.deletion_timestamp.is_none();
        let waiting = case.cluster.claims().filter(waits);
        waiting.filter_map(|claim| Some((claim.name().to_owned(), claim.true_since("Launched")?))).collect()
    });
    let created = node.metadata.creation_timestamp;
    let launched = waiting.iter().filter(|(_, at)| created < Some(**at) && **at < revived);
    // The first by name: in an incident the next ones are thousands.
    launched.filter_map(|(name, _)| case.cluster.claim(name)).find(|claim| trace(case, claim, node).is_some())
}

fn by(case: &Case, claim: &NodeClaim) -> Option<Opinion> {
    let launched = claim.true_since("Launched").filter(|_| !claim.is_true("Registered"))?;
    let left = LeftOver::of(case);
    let older = |name: &String| case.cluster.node(name).filter(|n| n.metadata.creation_timestamp < Some(launched));
    let trace_on = |name: &String| trace(case, claim, older(name)?);
    // Most claims have none of either. The last by name: in an incident the ones before it are thousands.
    let asked = claim.instance_id().and_then(|id| left.asked_by.get(id)).into_iter().flatten();
    let certain = asked.rev().find_map(trace_on);
    let is_certain = certain.is_some();
    let revived = left.revived.iter().rev().filter(|(_, at)| !is_certain && **at > launched);
    let mut likely = revived.filter_map(|(name, _)| trace_on(name));
    let trace = certain.or_else(|| likely.next())?;
    let is_one_of_several = likely.next().is_some();
    let waiting = case
        .class_members()
        .is_some_and(|class_members| class_members.launched_in_vain().any(|(_, name)| name != claim.name()));
    let confidence = match (trace.certain, is_one_of_several || waiting) {
        (true, _) => Confidence::Certain,
        (false, false) => Confidence::Likely,
        (false, true) => Confidence::Possible,
    };
    let name = trace.node.name();
    let id = &trace.node.spec.provider_id;
    Finding::new(
        confidence,
        format!(
            "The kubelet of NodeClaim {} uses Node {name}, left by an earlier instance with providerID {id}, so \
             Karpenter never sees a Node with the providerID of this NodeClaim.",
            claim.name()
        ),
        Evidence::new(
            format!("Node/{name}"),
            "spec.providerID",
            id.clone(),
            "it cannot be changed, and Karpenter matches NodeClaim and Node by it",
        ),
    )
    .with(trace.proof)
    .blaming(Blame::object("v1", "Node", name).field("spec.providerID"))
    .fix("Delete the stale Node (not the NodeClaim). The kubelet creates its own within seconds.")
    .inspect(
        "Check that the Node's instance is gone",
        trace.node.spec.provider_id.rsplit('/').next().map(|i| {
            format!("aws ec2 describe-instances --instance-ids {i} --query 'Reservations[].Instances[].State.Name'")
        }),
    )
    .destroy("Delete the stale Node", format!("kubectl delete node {name}"))
    .into()
}

/// The Nodes that Karpenter made and no NodeClaim has.
struct LeftOver {
    names: BTreeSet<String>,
    /// Those whose names an instance asked for a certificate under, by that instance.
    asked_by: BTreeMap<String, BTreeSet<String>>,
    /// Those that are Ready and whose kubelet started: when the earlier of the two happened.
    revived: BTreeMap<String, DateTime<Utc>>,
}

impl LeftOver {
    fn of(case: &Case) -> Arc<Self> {
        static LEFT_OVER: Memo<LeftOver> = Memo::new("Nodes that are left over, and their traces");
        case.cluster.once(&LEFT_OVER, "", || {
            let names: BTreeSet<String> = case.cluster.nodes_left_over().map(|node| node.name().to_owned()).collect();
            let mut asked_by: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for csr in case.cluster.csrs().filter(|_| !names.is_empty()) {
                let name = csr.spec.username.strip_prefix(USER).filter(|name| names.contains(*name));
                if let (Some(name), Some(id)) = (name, csr.instance_id()) {
                    asked_by.entry(id.to_owned()).or_default().insert(name.to_owned());
                }
            }
            let revived = case.cluster.nodes_left_over().filter_map(|node| {
                let ready = node.condition("Ready").filter(|c| c.is_true())?.last_transition_time?;
                let started = case
                    .cluster
                    .events("Node", node.name())
                    .filter(|event| starts(event))
                    .filter_map(Event::last_seen)
                    .max()?;
                Some((node.name().to_owned(), ready.min(started)))
            });
            let revived = revived.collect();
            LeftOver { names, asked_by, revived }
        })
    }
}

const USER: &str = "system:node:";

/// A kubelet that finds another boot id on its Node says Rebooted.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `updateNodeStatus`, cmd/kubelet/app/server.go.
fn starts(event: &Event) -> bool {
    matches!(event.reason.as_str(), "Starting" | "Rebooted") && event.reporter() == "kubelet"
}

/// The first certificate that each instance asked for under each name.
fn certificates(case: &Case) -> Arc<BTreeMap<(String, String), String>> {
    static CERTIFICATES: Memo<BTreeMap<(String, String), String>> =
        Memo::new("certificates by the instance that asked, and the name");
    case.cluster.once(&CERTIFICATES, "", || {
        let mut certificates = BTreeMap::new();
        for csr in case.cluster.csrs() {
            if let (Some(id), Some(name)) = (csr.instance_id(), csr.spec.username.strip_prefix(USER)) {
                let key = (id.to_owned(), name.to_owned());
                certificates.entry(key).or_insert_with(|| csr.metadata.name.to_string());
            }
        }
        certificates
    })
}

fn trace<'c>(case: &Case<'c>, claim: &NodeClaim, node: &'c Node) -> Option<Trace<'c>> {
    let launched = claim.true_since("Launched");
    // The session name of instance-profile credentials is the instance's id.
    // Source: aws-iam-authenticator @81b1dab pkg/server/server.go.
    let key = claim.instance_id().map(|id| (id.to_owned(), node.name().to_owned()));
    if let Some(csr) = key.and_then(|key| certificates(case).get(&key).cloned()) {
        let because = "the instance of this NodeClaim requested a certificate under the old Node's name";
        let proof = Evidence::new(
            format!("CertificateSigningRequest/{csr}"),
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
    let started = case.cluster.events("Node", node.name()).find(|e| starts(e) && e.last_seen() > launched)?;
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
