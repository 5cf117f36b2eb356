//! EC2 has no capacity for what the NodePool requests, or a quota or a full subnet blocks it: Karpenter deletes the
//! claim at once.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::explain::commands;
use crate::explain::launch_blame;
use crate::explain::launch_error::{self, FaultIn, LaunchError};
use crate::objects::input::Input;
use crate::objects::{Event, NodeClaim, NodeClass, NodePool};
use crate::rules::Rule;
use std::collections::BTreeSet;

pub static RULE: Rule = Rule {
    cause: "InsufficientCapacity",
    summary: "EC2 has no capacity for the instance types and zones that the NodePool allows",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodePools, Input::NodeClasses, Input::Events, Input::AwsObservations],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/InsufficientCapacity.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(pool) = case.pool().map(NodePool::name).or_else(|| case.claim.and_then(NodeClaim::node_pool)) else {
        return Opinion::Silent;
    };
    let refused = |e: &&Event| e.reason == "InsufficientCapacityError";
    let Some(event) = launch_blame::refused(case) else {
        // Events are kept for an hour, and can be switched off.
        return Opinion::Silent;
    };
    let message = &event.message;
    // An empty class reference also ends here, but the node class rules report it.
    if message.contains("Failed resolving NodeClass") {
        return Opinion::Silent;
    }
    let earlier: BTreeSet<&str> = case
        .cluster
        .claim_events_of_pool(pool)
        .filter(refused)
        .map(|e| e.involved_object.name.as_str())
        .filter(|name| *name != event.involved_object.name)
        .collect();
    // A single refusal is normal: Karpenter asks for another offering at once.
    if case.claim.is_some() && earlier.is_empty() && event.times() < 2 {
        return Opinion::Silent;
    }
    let wanted = wanted(case);
    // All of these end as InsufficientCapacityError: karpenter-provider-aws v1.14.1 pkg/errors/errors.go
    // `unfulfillableCapacityErrorCodes`. If capacity is one of several errors, more capacity would have been enough.
    let refusal =
        launch_error::named(message).filter(|e| !e.is_capacity() && !message.contains("InsufficientInstanceCapacity"));
    let zones = zones(message);
    let place = if zones.is_empty() { String::new() } else { format!(" in {}", zones.join(", ")) };
    let mut summary = match refusal {
        Some(refusal) => {
            format!("NodePool {pool} cannot launch {}: {}", wanted.as_deref().unwrap_or("instances"), refusal.why)
        }
        None => {
            format!(
                "{} has no {}capacity{place} for NodePool {pool}",
                cloud(case),
                wanted.map_or_else(String::new, |w| format!("{w} "))
            )
        }
    };
    let narrow = if refusal.is_none() { narrowest(case) } else { one_block_of_several(case, message) };
    let is_of_block = refusal.is_some() && narrow.is_some();
    if let Some(narrow) = &narrow {
        summary.push_str(", ");
        summary.push_str(&narrow.why);
    }
    match earlier.len() {
        0 => summary.push('.'),
        1 => summary.push_str(". An earlier NodeClaim was refused for the same reason."),
        _ => summary.push_str(". Earlier NodeClaims were refused for the same reason."),
    }
    let mut finding = Finding::new(
        Confidence::Certain,
        summary,
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "Karpenter deletes such a NodeClaim at once, so only this event remains",
        )
        .figures(format!("{} earlier", earlier.len())),
    );
    if let Some(narrow) = &narrow {
        let said = refusal.map_or_else(|| format!("{} has no capacity for it", cloud(case)), |r| r.why.to_owned());
        finding = finding.linked([
            Link::new(case.subject(), "it cannot be launched"),
            Link::new(format!("Event/{}", event.metadata.name), said),
            Link::new(&narrow.blame.object, narrow.why.clone()),
        ]);
    }
    let requirements = || Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements");
    let blame = match refusal.map(|r| r.fault) {
        _ if narrow.is_some() => narrow.map(|narrow| narrow.blame),
        None | Some(FaultIn::Requirements) => Some(requirements()),
        Some(FaultIn::Class(field)) => case.class_field(field),
        _ => None,
    };
    if let Some(blame) = blame {
        finding = finding.blaming(blame);
    }
    finding = finding.fix(refusal.map_or(
        "Allow more instance types, zones or capacity types in the NodePool, or add a fallback NodePool with lower \
         weight.",
        |r| r.fix,
    ));
    finding = with_steps(finding, refusal, pool);
    if let Some(class) = case.class().filter(|_| is_of_block) {
        finding = finding.fix(ONE_BLOCK).step(Risk::Mutating, "Select one capacity block", Some(commands::edit(class)));
    }
    if let Some(in_aws) = refusal.and_then(|refusal| launch_blame::in_aws(case, refusal, message)) {
        finding = in_aws.onto(finding);
    }
    finding.recurrences = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
    finding.into()
}

fn with_steps(finding: Finding, refusal: Option<&LaunchError>, pool: &str) -> Finding {
    match refusal.and_then(|r| r.command) {
        Some(command) => finding.step(Risk::Inspect, "See what the account has", Some(command.to_owned())).step(
            Risk::Mutating,
            "Or change what the NodePool requests",
            Some(format!("kubectl edit nodepool {pool}")),
        ),
        None => finding
            .step(
                Risk::Inspect,
                "See what the NodePool allows",
                Some(format!("kubectl get nodepool {pool} -o jsonpath='{{.spec.template.spec.requirements}}'")),
            )
            .step(Risk::Mutating, "Allow more", Some(format!("kubectl edit nodepool {pool}"))),
    }
}

const ONE_BLOCK: &str = "Give each capacity block a node class and a NodePool of its own: select it by its id in \
                         capacityReservationSelectorTerms. Karpenter then asks for each of them. Or allow other \
                         capacity types. This disrupts no node.";

/// The capacity blocks of which a launch asks for one, if a full one refuses it: CreateFleet accepts no more in a
/// request. Sources: karpenter-provider-aws v1.14.1 pkg/providers/instance/filter/filter.go `CapacityBlockFilter`;
/// aws/karpenter-provider-aws#8514.
fn one_block_of_several(case: &Case, message: &str) -> Option<Narrow> {
    let (pool, class) = (case.pool()?, case.class()?);
    let blocks = pool.reservations(class).filter(|reservation| reservation.is_capacity_block()).count();
    let is_full = message.contains("ReservationCapacityExceeded");
    (is_full && blocks > 1).then(|| Narrow {
        why: format!(
            "and a launch asks for only one of the {blocks} capacity blocks that {} {} selects for it",
            class.kind,
            class.name()
        ),
        blame: Blame::class(class).field("spec.capacityReservationSelectorTerms"),
    })
}

/// The setting that leaves EC2 little choice, and its object.
struct Narrow {
    why: String,
    blame: Blame,
}

/// The only value that the NodePool allows in a dimension of EC2's capacity, else the only zone of the class's subnets.
fn narrowest(case: &Case) -> Option<Narrow> {
    const DIMENSIONS: [(&str, &str); 4] = [
        ("node.kubernetes.io/instance-type", "the instance type"),
        ("karpenter.k8s.aws/instance-family", "the instance family"),
        ("topology.kubernetes.io/zone", "the zone"),
        ("karpenter.sh/capacity-type", "the capacity type"),
    ];
    let pool = case.pool()?;
    let requirements = &pool.spec.template.spec.requirements;
    let only = |key: &str| {
        let requirement = requirements.iter().find(|r| r.key == key && r.operator == "In")?;
        match &*requirement.values {
            [one] => Some(one.as_str()),
            _ => None,
        }
    };
    let pinned: Vec<String> =
        DIMENSIONS.iter().filter_map(|(key, what)| Some(format!("{what} {}", only(key)?))).collect();
    // Most NodePools have only one capacity type.
    if pinned.len() > usize::from(only("karpenter.sh/capacity-type").is_some()) {
        return Some(Narrow {
            why: format!("and requirements of the NodePool allow only {}", pinned.join(", ")),
            blame: Blame::object("karpenter.sh/v1", "NodePool", pool.name()).field("spec.template.spec.requirements"),
        });
    }
    let class = case.class()?;
    let (first, rest) = class.status.subnets.split_first()?;
    let is_one_zone = !first.zone.is_empty() && rest.iter().all(|subnet| subnet.zone == first.zone);
    is_one_zone.then(|| Narrow {
        why: format!("and all subnets of {} {} are in the zone {}", class.kind, class.name(), first.zone),
        blame: Blame::class(class).field("spec.subnetSelectorTerms"),
    })
}

/// The requested instance types, in words; `None` if any will do.
fn wanted(case: &Case) -> Option<String> {
    const KEY: &str = "node.kubernetes.io/instance-type";
    if let Some(fixed) = case.claim.and_then(|c| c.fixed(KEY)) {
        return Some(fixed.to_owned());
    }
    let requirements =
        case.claim.map(|c| &c.spec.requirements).or_else(|| case.pool().map(|p| &p.spec.template.spec.requirements));
    let types = requirements
        .into_iter()
        .flatten()
        .find(|r| r.key == KEY && r.operator == "In")
        .map(|r| &*r.values)
        .unwrap_or_default();
    match types {
        [] => None,
        [one] => Some(one.to_string()),
        [one, two] => Some(format!("{one} or {two}")),
        [one, rest @ ..] => Some(format!("{one} (or {} more types)", rest.len())),
    }
}

/// The zones that the refusals name: `… in the Availability Zone you requested (eu-west-3b)`.
fn zones(message: &str) -> Vec<&str> {
    let named = message.split("Availability Zone you requested (").skip(1).filter_map(|rest| rest.split(')').next());
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The owner of the capacity.
fn cloud(case: &Case) -> &'static str {
    if case.class().is_none_or(NodeClass::is_ec2) { "EC2" } else { "the cloud" }
}
