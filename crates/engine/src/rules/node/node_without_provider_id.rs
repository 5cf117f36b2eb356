//! The machine's Node exists, but has no providerID by which Karpenter could match it.

use crate::cluster_state::class_members::ClassMembers;
use crate::cluster_state::memo::Memo;
use crate::facts::names_with_ids::NamesWithIds;
use crate::objects::{Meta, Node, NodeClaim};
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use chrono::{DateTime, Utc};
use std::cmp::Reverse;
use std::collections::BTreeMap;

rule! {
    cause: NodeWithoutProviderID,
    summary: "A Node joined without a providerID, so Karpenter cannot match it to its NodeClaim",
    stages: [Join, Register],
    reads: [Nodes, NodeClaims, NodeClasses],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, alike) = match (case.node, case.claim) {
        // A Node that waits for Karpenter and has no claim: it is its own candidate.
        (Some(node), None) if node.spec.provider_id.is_empty() => (node, 1),
        (None, Some(claim)) => candidates(case, claim)?,
        _ => return None,
    };
    // The cloud controller may only be about to set it.
    let settled = node.metadata.creation_timestamp.and_then(|at| at.checked_add_signed(case.wait.proven));
    if let Some(at) = settled.filter(|at| case.now < *at) {
        return Some(Opinion::LookAgain(at));
    }
    let instance = case.claim.and_then(|c| c.instance_id());
    // Resource-name hosts carry the instance id; else it can only be told apart where it is the only one.
    let named = instance.is_some_and(|id| node.name().contains(id));
    let confidence = if named || case.claim.is_none() {
        Confidence::Certain
    } else if alike == 1 && !others_may_be_it(case, node) {
        Confidence::Likely
    } else {
        Confidence::Possible
    };
    let name = node.name();
    let whose = case.claim.map_or_else(|| "its NodeClaim".to_owned(), |c| format!("NodeClaim {}", c.name()));
    let summary = if alike == 1 {
        format!(
            "Node {name} joined without spec.providerID, so Karpenter cannot match it to {whose}: the cloud controller \
             has not found its instance."
        )
    } else {
        format!(
            "Several Nodes joined without spec.providerID, {name} among them, so Karpenter cannot match one to \
             {whose}: the cloud controller has not found their instances."
        )
    };
    let object = format!("Node/{name}");
    let mut finding = Finding::new(
        confidence,
        summary,
        Evidence::new(
            &object,
            "spec.providerID",
            "empty",
            "Karpenter matches NodeClaim and Node by this id; the cloud controller or the bootstrap sets it",
        )
        .figures(format!("{alike} such Node(s)")),
    )
    // Nobody knows which of several it is.
    .blaming((alike == 1).then(|| Blame::object("v1", "Node", name).field("spec.providerID")))
    .fix(
        "Make the Node's name the instance's private DNS name (DHCP options, hostname override), so that the cloud \
         controller finds the instance. This affects new nodes.",
    )
    .inspect(
        "Compare the Node's name with the instance's private DNS name",
        instance.map(|id| {
            format!(
                "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].PrivateDnsName'"
            )
        }),
    );
    finding = finding.inspect("See the Node's name and addresses", format!("kubectl get node {name} -o yaml"));
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

/// The Node that may be this claim's machine, and how many may be: the one with its instance's id, else the first.
fn candidates<'w>(case: &Case<'w>, claim: &NodeClaim) -> Option<(&'w Node, usize)> {
    static NODES: Memo<Nodes> = Memo::new("Nodes without a providerID, by what tells them apart");
    let nodes = case.cluster.once(&NODES, "", || Nodes::of(case));
    let launched = claim.true_since("Launched");
    let is_candidate = |node: &&Node| node.metadata.creation_timestamp >= launched && fits(node, claim);
    let mut named = claim.instance_id().into_iter().flat_map(|id| nodes.by_id.holding(id));
    if let Some(node) = named.find_map(|name| case.cluster.node(name).filter(is_candidate)) {
        return Some((node, 1));
    }
    // A resource name is another instance's where it is not this one's.
    let place = Place::of(&claim.metadata);
    let mut found: Option<(usize, usize)> = None;
    for (_, of_place) in nodes.nameless.iter().filter(|(other, _)| other.may_be(&place)) {
        let count = of_place.partition_point(|(created, _)| *created >= launched);
        if let Some((_, first)) = count.checked_sub(1).and_then(|last| of_place.get(last)) {
            let (least, all) = found.unwrap_or((*first, 0));
            found = Some((least.min(*first), all + count));
        }
    }
    let (first, count) = found?;
    Some((case.cluster.node(nodes.names.get(first)?)?, count))
}

/// Whether another machine of the class that waits for its Node may have this one.
fn others_may_be_it(case: &Case, node: &Node) -> bool {
    /// By class, then by place: the first two of each.
    static WAITING: Memo<BTreeMap<Place, Vec<String>>> = Memo::new("claims of a class that wait for a Node, by place");
    let Some(class) = case.claim.map(|claim| &claim.spec.node_class_ref) else { return false };
    let waiting = case.cluster.once(&WAITING, &format!("{}/{}", class.kind, class.name), || {
        let mut waiting: BTreeMap<Place, Vec<String>> = BTreeMap::new();
        let waits = |c: &&NodeClaim| {
            c.is_true("Launched")
                && !c.is_true("Registered")
                && case.cluster.nodes_with_provider_id(&c.status.provider_id).next().is_none()
        };
        let members = case.class_members().into_iter().flat_map(ClassMembers::claims);
        for claim in members.filter_map(|name| case.cluster.claim(name)).filter(waits) {
            let of_place = waiting.entry(Place::of(&claim.metadata)).or_default();
            if of_place.len() < 2 {
                of_place.push(claim.name().to_owned());
            }
        }
        waiting
    });
    let (place, own) = (Place::of(&node.metadata), case.claim.map(NodeClaim::name));
    let mut fitting = waiting.iter().filter(|(other, _)| other.may_be(&place));
    node.metadata.label(NODE_GROUP).is_none()
        && fitting.any(|(_, names)| names.iter().any(|name| Some(name.as_str()) != own))
}

/// The NodePool and the zone of a Node or NodeClaim, each if known. They distinguish Nodes before a Node has its
/// providerID.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place([Option<String>; 2]);

impl Place {
    fn of(meta: &Meta) -> Self {
        Self(["karpenter.sh/nodepool", "topology.kubernetes.io/zone"].map(|key| meta.label(key).map(str::to_owned)))
    }

    fn may_be(&self, other: &Self) -> bool {
        let mut both = self.0.iter().zip(&other.0);
        both.all(|(one, other)| one.is_none() || other.is_none() || one == other)
    }
}

/// When a Node was created, and a position among the names.
type Created = (Option<DateTime<Utc>>, usize);

/// The Nodes without a providerID that may be a NodeClaim's.
struct Nodes {
    by_id: NamesWithIds,
    /// In order.
    names: Vec<String>,
    /// By place: when each was created, the latest first, with the first of `names` among those so far. Without those
    /// that are called after an instance.
    nameless: BTreeMap<Place, Vec<Created>>,
}

impl Nodes {
    fn of(case: &Case) -> Self {
        let nodes = case.cluster.nodes_without_provider_id().filter(|node| node.metadata.label(NODE_GROUP).is_none());
        let nodes: Vec<&Node> = nodes.collect();
        let mut nameless: BTreeMap<Place, Vec<Created>> = BTreeMap::new();
        for (at, node) in nodes.iter().enumerate().filter(|(_, node)| !node.name().starts_with("i-")) {
            let of_place = nameless.entry(Place::of(&node.metadata)).or_default();
            of_place.push((node.metadata.creation_timestamp, at));
        }
        for of_place in nameless.values_mut() {
            of_place.sort_unstable_by_key(|(created, at)| (Reverse(*created), *at));
            let mut first = usize::MAX;
            for (_, at) in of_place {
                first = first.min(*at);
                *at = first;
            }
        }
        let by_id = NamesWithIds::of(nodes.iter().map(|node| node.name()));
        Self { by_id, names: nodes.into_iter().map(|node| node.name().to_owned()).collect(), nameless }
    }
}

/// EKS labels the Nodes of a managed node group so, which Karpenter has nothing to do with.
const NODE_GROUP: &str = "eks.amazonaws.com/nodegroup";

/// Whether the Node could be this NodeClaim's machine: its pool label, if any, is the NodeClaim's.
fn fits(node: &Node, claim: &NodeClaim) -> bool {
    node.metadata.label(NODE_GROUP).is_none() && Place::of(&node.metadata).may_be(&Place::of(&claim.metadata))
}
