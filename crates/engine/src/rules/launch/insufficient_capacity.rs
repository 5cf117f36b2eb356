//! EC2 has no capacity for what the NodePool requests, or a quota or a full subnet blocks it: Karpenter deletes the
//! claim at once.

use crate::case::pool_wait::{is_refused_launch, is_unasked};
use crate::explain::commands;
use crate::explain::launch_blame;
use crate::explain::launch_error::{self, FaultIn, LaunchError};
use crate::explain::vcpu_quota::TooSmall;
use crate::objects::{Event, NodeClaim, NodeClass, NodeOverlay, NodePool, Requirement};
use crate::rules::prelude::*;
use crate::upstream::karpenter::Karpenter;
use std::collections::{BTreeMap, BTreeSet};

rule! {
    cause: InsufficientCapacity,
    summary: "EC2 has no capacity for the instance types and zones that the NodePool allows",
    stages: [Launch],
    reads: [NodeClaims, NodePools, NodeClasses, NodeOverlays, Events, Deployments, AwsObservations],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let pool = case.pool().map(NodePool::name).or_else(|| case.claim.and_then(NodeClaim::node_pool))?;
    let refused = |e: &&Event| e.reason == "InsufficientCapacityError";
    let Some(event) = launch_blame::refused(case) else {
        // Events are kept for an hour, and can be switched off.
        return None;
    };
    let message = &event.message;
    // An empty class reference also ends here, but the node class rules report it.
    if message.contains("Failed resolving NodeClass") {
        return None;
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
        return None;
    }
    let is_dropped = drops_all(case, event);
    if let Some(overlay) = overlaid(case).filter(|_| is_dropped) {
        let mut finding = of_overlay(pool, event, overlay);
        finding.recurrences = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
        return finding.into();
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
            let why = TooSmall::of(case, refusal, message).map_or_else(|| refusal.why.to_owned(), |quota| quota.why());
            format!("NodePool {pool} cannot launch {}: {why}", wanted.as_deref().unwrap_or("instances"))
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
    // One that was not read may be why.
    let may_be_overlaid = is_dropped && has_overlays(case) && case.cluster.missing(Input::NodeOverlays).is_some();
    let mut finding = Finding::new(
        if may_be_overlaid { Confidence::Likely } else { Confidence::Certain },
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
    if may_be_overlaid {
        finding = finding.unknown("Does a NodeOverlay change prices?", "kubectl get nodeoverlays -o yaml");
    }
    if let Some(class) = case.class().filter(|_| is_of_block) {
        finding = finding.fix(ONE_BLOCK).change("Select one capacity block", commands::edit(class));
    }
    if let Some(in_aws) = refusal.and_then(|refusal| launch_blame::in_aws(case, refusal, message)) {
        finding = in_aws.onto(finding);
    }
    finding.recurrences = u32::try_from(earlier.len()).unwrap_or(u32::MAX);
    finding.into()
}

/// Whether Karpenter, with a choice between spot and on-demand capacity, dropped everything before it asked EC2, and
/// EC2 has refused nothing: what it has refused is unavailable for a while, whatever it costs.
fn drops_all(case: &Case, event: &Event) -> bool {
    let is_mixed = |r: &Requirement| {
        let has = |capacity_type: &str| r.values.iter().any(|value| *value == *capacity_type);
        r.key == "karpenter.sh/capacity-type" && r.operator == "In" && has("spot") && has("on-demand")
    };
    let Some(pool) = case.pool().filter(|pool| pool.spec.template.spec.requirements.iter().any(is_mixed)) else {
        return false;
    };
    is_unasked(event) && case.cluster.claim_events_of_pool(pool.name()).all(|e| !e.message.contains("fleet error"))
}

/// Whether Karpenter may take NodeOverlays into account, as far as is known of it.
fn has_overlays(case: &Case) -> bool {
    case.karpenter().is_none_or(Karpenter::has_overlays)
}

/// The NodeOverlay that may have made all spot capacity dearer than on-demand capacity. Karpenter drops spot offerings
/// that cost more than the cheapest on-demand offering, by the prices that overlays give them.
/// Sources: karpenter-provider-aws v1.14.1 pkg/providers/instance/filter/filter.go `SpotOfferingFilter`;
/// aws/karpenter-provider-aws#8704.
fn overlaid<'w>(case: &Case<'w>) -> Option<&'w NodeOverlay> {
    let pool = case.pool()?;
    if !has_overlays(case) {
        return None;
    }
    let came_before = |overlay: &NodeOverlay| {
        let created = overlay.metadata.creation_timestamp;
        let mut refusals = case.cluster.claim_events_of_pool(pool.name()).filter(|e| is_refused_launch(e));
        refusals.all(|e| e.last_seen() >= created)
    };
    let mut overlays = case.cluster.node_overlays().filter(|o| o.makes_spot_dearer().is_some() && !o.is_refused());
    overlays.find(|overlay| overlay.may_apply_to(pool) && came_before(overlay))
}

fn of_overlay(pool: &str, event: &Event, overlay: &NodeOverlay) -> Finding {
    let name = overlay.name();
    let dearer = overlay.makes_spot_dearer();
    let (capacity_type, field, change) =
        dearer.map_or(("on-demand", "price", ""), |dearer| (dearer.capacity_type, dearer.field, dearer.change));
    Finding::new(
        Confidence::Likely,
        format!(
            "Karpenter launches nothing for NodePool {pool} and does not ask EC2. NodeOverlay {name} changes the price \
             of {capacity_type} capacity ({field} {change}), so spot probably counts as dearer than on-demand, and \
             Karpenter drops it."
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "Karpenter writes this without a fleet error if it drops every instance type before the request",
        ),
    )
    .with(Evidence::new(
        format!("NodeOverlay/{name}"),
        format!("spec.{field}"),
        change.to_owned(),
        "Karpenter compares the prices of spot and on-demand capacity after this change",
    ))
    .blaming(Blame::object("karpenter.sh/v1alpha1", "NodeOverlay", name).field(format!("spec.{field}")))
    .fix(format!(
        "Remove NodeOverlay {name}, or change the price by less than what spot saves. Or use a NodePool for spot and \
         one for on-demand, because Karpenter compares these prices only within a launch. This disrupts no node."
    ))
    .inspect("See which prices are changed", "kubectl get nodeoverlays -o yaml".to_owned())
    .change("Change the price, or delete the overlay", format!("kubectl edit nodeoverlay {name}"))
}

fn with_steps(finding: Finding, refusal: Option<&LaunchError>, pool: &str) -> Finding {
    match refusal.and_then(|r| r.command) {
        Some(command) => finding
            .inspect("See what the account has", command.to_owned())
            .change("Or change what the NodePool requests", format!("kubectl edit nodepool {pool}")),
        None => finding
            .inspect(
                "See what the NodePool allows",
                format!("kubectl get nodepool {pool} -o jsonpath='{{.spec.template.spec.requirements}}'"),
            )
            .change("Allow more", format!("kubectl edit nodepool {pool}")),
    }
}

const ONE_BLOCK: &str = "Give each capacity block a node class and a NodePool of its own: select it by its id in \
                         capacityReservationSelectorTerms. Karpenter then asks for each of them. Or allow other \
                         capacity types. This disrupts no node.";

/// The most capacity blocks of one instance type in one zone. Karpenter goes on to a block of another type or zone.
fn most_alike_blocks(pool: &NodePool, class: &NodeClass) -> usize {
    let mut blocks = BTreeMap::<(&str, &str), usize>::new();
    for block in pool.reservations(class).filter(|reservation| reservation.is_capacity_block()) {
        *blocks.entry((block.instance_type.as_str(), block.availability_zone.as_str())).or_default() += 1;
    }
    blocks.into_values().max().unwrap_or_default()
}

/// The capacity blocks of which a launch asks for one, if a full one refuses it: CreateFleet accepts no more in a
/// request. Sources: karpenter-provider-aws v1.14.1 pkg/providers/instance/filter/filter.go `CapacityBlockFilter`;
/// aws/karpenter-provider-aws#8514.
fn one_block_of_several(case: &Case, message: &str) -> Option<Narrow> {
    let (pool, class) = (case.pool()?, case.class()?);
    // Before 0.32, no class selected any.
    if class.is_node_template() {
        return None;
    }
    let blocks = most_alike_blocks(pool, class);
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
