//! A node of the same class that got through, so that the subnet is no certain culprit.
//!
//! Selectors of subnets and security groups are no part of the hash of the class, so an edit after the other node was
//! made means that it may have got others.
//! Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go (`hash:"ignore"`).

use crate::api::{Blame, Confidence, Evidence, Stage, Unknown, Witness};
use crate::case::Case;
use crate::case::extended::EFA;
use crate::case::finding::Finding;
use crate::objects::{Node, NodeClaim};
use chrono::TimeDelta;

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";

/// What an instance does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    /// The boot asks AWS, so a node that booted long before says nothing of the way as it is now.
    Aws,
    /// Each Ready node reaches it now.
    ApiServer,
}

/// A node that was launched with the same settings in the same place, as far as the cluster tells.
#[derive(Debug)]
pub(crate) struct GotThrough<'w> {
    sibling: &'w NodeClaim,
    /// " in the same subnet".
    place: &'static str,
}

/// The sibling that got through, one of the same instance type before others.
pub(crate) fn sibling<'w>(case: &Case<'w>, destination: Destination) -> Option<GotThrough<'w>> {
    /// A route that was removed longer before may have let the other node through.
    const RECENT: TimeDelta = TimeDelta::hours(1);
    let own = case.claim?;
    let launched = own.true_since("Launched").or(own.metadata.creation_timestamp)?;
    let written = case.class().and_then(|class| class.metadata.last_written()).map(|written| written.at);
    let has_served = |other: &NodeClaim| {
        let is_ready = case.cluster.nodes_of(other).into_iter().any(Node::is_ready);
        is_ready && (is_joining(case) || other.is_true("Initialized"))
    };
    let is_recent = |other: &NodeClaim| {
        destination == Destination::ApiServer
            || other.true_since("Registered").is_some_and(|joined| joined >= launched - RECENT)
    };
    let is_alike = |other: &NodeClaim| {
        let has_its_settings =
            written.is_none_or(|at| other.metadata.creation_timestamp.is_some_and(|made| made >= at));
        let is_near = zone(own).zip(zone(other)).is_none_or(|(own, others)| own == others);
        has_its_settings && is_near
    };
    let fits = |other: &&NodeClaim| is_alike(other) && is_recent(other) && has_served(other);
    let is_of_type = |other: &&NodeClaim| other.metadata.label(TYPE) == own.metadata.label(TYPE);
    let sibling = case
        .same_spec_siblings_joined()
        .find(|other| is_of_type(other) && fits(other))
        .or_else(|| case.same_spec_siblings_joined().find(fits))?;
    Some(GotThrough { sibling, place: place(case, own, sibling) })
}

fn is_joining(case: &Case) -> bool {
    matches!(case.stage(), Stage::Join | Stage::Register)
}

/// The zone, from the label or from the provider ID (`aws:///eu-west-1a/i-0…`).
fn zone(claim: &NodeClaim) -> Option<&str> {
    let of_id = || claim.status.provider_id.strip_prefix("aws:///")?.split('/').next();
    claim.metadata.label(ZONE).or_else(of_id).filter(|zone| !zone.is_empty())
}

/// Where both are. Karpenter puts a node into any subnet of the class in the node's zone.
fn place(case: &Case, own: &NodeClaim, sibling: &NodeClaim) -> &'static str {
    let (Some(zone), Some(_)) = (zone(own), zone(sibling)) else { return "" };
    let subnets = case.class().into_iter().flat_map(|class| &class.status.subnets);
    match subnets.filter(|subnet| subnet.zone == zone).count() {
        1 => " in the same subnet",
        _ => " in the same zone",
    }
}

impl GotThrough<'_> {
    /// The finding without certainty and without the subnet: it blames the class as a whole and asks what differs.
    pub(crate) fn in_finding(self, case: &Case, finding: Finding) -> Finding {
        let Self { sibling, place } = self;
        let name = sibling.name();
        let verb = if is_joining(case) { "joined" } else { "is in service" };
        let there = if place.is_empty() { "" } else { " there" };
        let mut finding = finding
            .adding(&format!(
                "NodeClaim {name} of the same class {verb}{place}, so the network{there} let that node through."
            ))
            .with(Evidence::new(
                format!("NodeClaim/{name}"),
                r#"status.conditions[?(@.type=="Registered")]"#,
                "True",
                format!("this node of the same class {verb}{place}"),
            ))
            .blaming(case.class().map(Blame::class))
            .fix(format!(
                "Find what separates this instance from that of NodeClaim {name}: security groups, network \
                 interfaces, or the default route. If nothing does, replace this instance."
            ));
        finding.confidence = finding.confidence.min(Confidence::Likely);
        if let Some((own, other)) = case.instance_id().zip(sibling.instance_id()) {
            finding.unknowns.insert(0, difference(own, other));
        }
        match efa(case) {
            Some(efa) => asking_for_route(case, finding, efa),
            None => finding,
        }
    }
}

fn difference(own: &str, other: &str) -> Unknown {
    let command = format!(
        "aws ec2 describe-instances --instance-ids {own} {other} --query \
         'Reservations[].Instances[].[InstanceId,InstanceType,SubnetId,SecurityGroups[].GroupId,\
         NetworkInterfaces[].[Attachment.NetworkCardIndex,Attachment.DeviceIndex,InterfaceType,PrivateIpAddress]]'"
    );
    let question = "Do subnet, security groups or network interfaces differ from those of the node that joined?";
    Unknown { source: Witness::Aws, question: question.into(), command: command.into() }
}

/// How many EFA interfaces Karpenter gave the instance: as many as its pods request.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `getEFACountForInstance`.
fn efa<'w>(case: &Case<'w>) -> Option<&'w str> {
    case.claim?.spec.resources.requests.get(EFA).filter(|count| *count != "0")
}

/// Until v20250915 the image could configure a second interface during the boot, which then took the default route.
/// cloud-init prints the routes to the console.
/// Sources: awslabs/amazon-eks-ami#2324, #2423, CHANGELOG.md (v20250904 #2397, v20250915 #2432); cloud-init 23.4
/// cloudinit/netinfo.py `debug_info`.
fn asking_for_route(case: &Case, finding: Finding, efa: &str) -> Finding {
    let fix = format!(
        "{} If another interface than the first holds the default route, use a newer image (AL2023: v20250915 or \
         newer).",
        finding.fix
    );
    let mut finding = finding
        .adding(&format!(
            "The instance has EFA interfaces ({EFA}: {efa}), and one of them may hold the default route instead of the \
             first interface."
        ))
        .fix(fix);
    if let Some(id) = case.instance_id() {
        let question = "Which network interface holds the default route?";
        let command = format!("aws ec2 get-console-output --latest --output text --instance-id {id} | grep ci-info");
        let unknown = Unknown { source: Witness::Aws, question: question.into(), command: command.into() };
        finding.unknowns.insert(0, unknown);
    }
    finding
}
