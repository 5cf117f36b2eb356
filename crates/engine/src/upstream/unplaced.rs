//! Why Karpenter makes no machine for a pod: its `FailedScheduling` events name each NodePool, and what speaks against
//! it.

use crate::objects::Event;
use crate::upstream::startup_taint;
use chrono::{DateTime, TimeDelta, Utc};

/// What speaks against a NodePool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementObstacle {
    /// Any machine would exceed its limits. It is asked before whether the pod may go there at all.
    Limits,
    /// The pod may go there, and no instance type is left.
    NoInstanceType,
    /// The pod may go there, but for the zone that it has to be in.
    Zone,
    /// The pod does not tolerate a taint that an agent would take from the Node once it runs.
    StartupTaint,
    /// The pod asks for a label that the NodePool gives no machine, and no NodePool has anything else against it.
    Label,
    /// Karpenter says nothing about the NodePool. Its own requirements leave no instance type, so Karpenter skips it
    /// for every pod.
    /// Source: core pkg/controllers/provisioning/scheduling/scheduler.go `NewScheduler` (v1.14.1).
    PassedOver,
}

/// Karpenter's message about a pod that it launches no node for. Before 0.16 it had other words.
/// Sources: core pkg/controllers/provisioning/scheduling/events.go (v1.14.1); aws/karpenter v0.11.1
/// pkg/events/recorder.go `PodFailedToSchedule`.
fn said(event: &Event) -> Option<&str> {
    let words = match event.reason.as_str() {
        "FailedScheduling" => "Failed to schedule pod, ",
        "FailedProvisioning" => "Failed to provision new node, ",
        _ => return None,
    };
    event.message.strip_prefix(words)
}

/// Whether it may still hold: Karpenter repeats the event every five minutes.
/// Source: core pkg/controllers/provisioning/scheduling/events.go `PodFailedToScheduleEvent` (v1.14.1).
pub fn is_repeated(event: &Event, now: DateTime<Utc>) -> bool {
    const REPEATED: TimeDelta = TimeDelta::minutes(10);
    event.last_seen().is_some_and(|at| now - at <= REPEATED)
}

/// Whether it is Karpenter's word that it makes no machine for the pod.
pub fn is_refusal(event: &Event) -> bool {
    said(event).is_some()
}

/// Whether it makes none because the pod asks for devices by a ResourceClaim, whatever NodePools there are.
/// Source: core pkg/controllers/provisioning/scheduling/scheduler.go `add` (v1.14.1; since v1.7.0).
pub fn refuses_claims(event: &Event) -> bool {
    said(event).is_some_and(|said| said.contains("pod has Dynamic Resource Allocation requirements"))
        || finds_no_device(event)
}

/// Whether Karpenter tried to allocate what the ResourceClaim requests, and knows no instance type with such devices.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go `CanAdd`,
/// pkg/scheduling/dynamicresources/allocator.go (v1.14.1).
pub fn finds_no_device(event: &Event) -> bool {
    said(event)
        .is_some_and(|said| said.contains("allocating dynamic resources, no instance type can satisfy the allocation"))
}

/// Whether it is Karpenter's word about a NodePool whose own requirements leave no instance type. Karpenter skips such a
/// NodePool, and its messages about pods do not name it. It repeats the event every minute while pods wait.
/// Source: core pkg/controllers/provisioning/scheduling/{scheduler,events}.go `NewScheduler`,
/// `NoCompatibleInstanceTypes` (v1.4.0, v1.14.1, v1.15.0).
pub fn leaves_no_type(event: &Event) -> bool {
    event.reason == "NoCompatibleInstanceTypes"
}

/// Whether the NodePool's minValues leave none, and not its requirements as such.
pub fn leaves_no_type_for_min_values(event: &Event) -> bool {
    event.message.contains("due to minValues incompatibility")
}

/// The NodePools that an event of Karpenter's refuses, each with the reason. A pod that the NodePool is not for is
/// refused for its labels or taints, which is left out here but for taints that are nobody's to tolerate, and a label
/// of which no value is known, if nothing else is said.
/// Sources: core pkg/controllers/provisioning/scheduling/{events,scheduler,nodeclaim}.go (v1.0.5, v1.4.0, v1.14.1).
pub fn refusals(event: &Event) -> impl Iterator<Item = (&str, PlacementObstacle)> {
    let told = parts(event).filter_map(|part| Some((pool(part)?, obstacle(part)?)));
    let mut told = told.peekable();
    let is_label_alone = told.peek().is_none();
    let labeled = parts(event).filter(move |part| is_label_alone && label_in(part).is_some());
    told.chain(labeled.filter_map(|part| Some((pool(part)?, PlacementObstacle::Label))))
}

/// The reasons that the message lists. Karpenter gives one for each NodePool, or one for each of its taints.
fn parts(event: &Event) -> impl Iterator<Item = &str> {
    said(event).into_iter().flat_map(|message| message.split("; "))
}

/// What a part of the message has against a NodePool. `None` if it is about the pod's own labels or tolerations.
fn obstacle(part: &str) -> Option<PlacementObstacle> {
    if part.contains("exceed limits for nodepool") || part.contains("node limits have been exhausted") {
        return Some(PlacementObstacle::Limits);
    }
    if part.contains("no instance type") {
        return Some(PlacementObstacle::NoInstanceType);
    }
    if [UNSPREAD, UNACCOMPANIED, OF_NO_ZONE].iter().any(|said| part.contains(said)) {
        return Some(PlacementObstacle::Zone);
    }
    let is_startup_taint = part.contains("did not tolerate") && startup_taint::is_named_in(part);
    is_startup_taint.then_some(PlacementObstacle::StartupTaint)
}

/// A reason for which Karpenter does not name the NodePool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnnamedReason<'e> {
    pub obstacle: PlacementObstacle,
    /// The part of the message.
    pub part: &'e str,
}

/// The reasons for which Karpenter does not name the NodePool. They are about zones or startup taints, or about a label
/// if Karpenter names no NodePool for another reason. Since 1.5 only the reasons about limits and instance types name
/// their NodePool. Before 1.5, a NodePool may have several reasons, and only the first of them names it.
///
/// Sources: core pkg/controllers/provisioning/scheduling/scheduler.go `addToNewNodeClaim` (v1.14.1, v1.15.0) and `add`
/// (v1.0.5); pkg/controllers/provisioning/scheduling/nodeclaim.go `CanAdd` (v1.14.1, v1.15.0).
pub fn unnamed(event: &Event) -> impl Iterator<Item = UnnamedReason<'_>> {
    let names_all = said(event).is_some_and(|said| said.contains("incompatible with "));
    let told = parts(event).filter(move |part| !names_all && pool(part).is_none()).filter_map(|part| {
        let obstacle = obstacle(part)?;
        let is_left_open = matches!(obstacle, PlacementObstacle::Zone | PlacementObstacle::StartupTaint);
        is_left_open.then_some(UnnamedReason { obstacle, part })
    });
    let label = label_without_pool(event).filter(|_| !names_all);
    told.chain(label.map(|part| UnnamedReason { obstacle: PlacementObstacle::Label, part }))
}

/// The part about a label of which a NodePool knows no value. `None` if Karpenter names this NodePool, or has another
/// reason for a NodePool that it names.
fn label_without_pool(event: &Event) -> Option<&str> {
    let part = parts(event).find(|part| label_in(part).is_some())?;
    (pool(part).is_none() && refusals(event).next().is_none()).then_some(part)
}

/// The first NodePool that is refused for a label of which it knows no value, and the label. Since 1.5 only the reasons
/// about limits and instance types name their NodePool.
/// Sources: core pkg/scheduling/requirements.go `Compatible` (v1.0.5, v1.14.1);
/// pkg/controllers/provisioning/scheduling/scheduler.go `addToNewNodeClaim` (v1.4.0, v1.5.0, v1.14.1).
pub fn unknown_label(event: &Event) -> Option<(Option<&str>, &str)> {
    parts(event).find_map(|part| Some((pool(part), label_in(part)?)))
}

fn label_in(part: &str) -> Option<&str> {
    let (before, _) = part.split_once("\" does not have known values")?;
    before.rsplit_once("label \"").map(|(_, key)| key)
}

/// The NodePool that a part of the message is about: each version has its own way to name it. Before 0.32 it was a
/// Provisioner: core pkg/controllers/provisioning/scheduling/scheduler.go (v0.27.5).
fn pool(part: &str) -> Option<&str> {
    let ways = [
        ("karpenter.sh/nodepool In [", ']'),
        ("nodepool: \"", '"'),
        ("nodepool \"", '"'),
        ("NodePool=", ')'),
        ("incompatible with provisioner \"", '"'),
        ("exceed limits for provisioner: \"", '"'),
    ];
    ways.into_iter().find_map(|(before, after)| {
        let (_, rest) = part.split_once(before)?;
        rest.split([after, ',', ' ']).next().filter(|name| !name.is_empty())
    })
}

/// The parts of the message that are about this NodePool.
pub fn of_pool<'e>(event: &'e Event, named: &str) -> impl Iterator<Item = &'e str> {
    parts(event).filter(move |part| pool(part) == Some(named))
}

/// The key of a requirement, and its values where it lists them all.
pub type UnmetRequirement<'e> = (&'e str, Option<Vec<&'e str>>);

/// Karpenter's reason if no instance type meets the requirements, whatever is available.
const UNMET: [&str; 1] = ["no instance type met all requirements"];
/// Karpenter's reasons if instance types meet the requirements and are large enough, but have no price, or no offering
/// in the required zones and capacity types.
const UNOFFERED: [&str; 2] =
    ["no instance type has the required offering", "had enough resources, had a required offering"];

/// Karpenter's reason, since 1.15, if the reservations that fit are full, while it plans a replacement.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go `offeringsToReserve` (v1.15.0).
const FULL: &str = "the only compatible reserved offering is full";

/// Whether Karpenter says of a node that it cannot replace it, because nothing that suits a pod of the node is offered
/// in this NodePool. If Karpenter names no NodePool whose reservation is full, it must be the only one with any.
/// Sources: core pkg/controllers/disruption/drift.go `ComputeCommands`,
/// pkg/controllers/provisioning/scheduling/scheduler.go `NonPendingPodSchedulingErrors` (v1.0.5, v1.14.1).
pub fn finds_no_offering_for_replacement(event: &Event, named: &str, only_one_with_reservations: bool) -> bool {
    let is_unoffered = |part: &str| pool(part) == Some(named) && UNOFFERED.iter().any(|reason| part.contains(reason));
    let is_full =
        |part: &str| part.contains(FULL) && pool(part).map_or(only_one_with_reservations, |of_pool| of_pool == named);
    event.reason == "DisruptionBlocked"
        && event.message.starts_with("Not all pods would schedule")
        && event.message.split("; ").any(|part| is_unoffered(part) || is_full(part))
}

/// The combined requirements of a NodePool and a pod, if no instance type meets them, whatever is available. `None` if
/// Karpenter gives another reason for the NodePool.
///
/// Karpenter lists five values of a requirement and only counts the rest.
/// Sources: core pkg/controllers/provisioning/scheduling/nodeclaim.go `InstanceTypeFilterError`,
/// pkg/scheduling/requirement.go `String` (v1.0.5, v1.4.0, v1.14.1).
pub fn unmet<'e>(event: &'e Event, named: &str) -> Option<Vec<UnmetRequirement<'e>>> {
    asked(event, named, &UNMET)
}

/// The combined requirements of a NodePool and a pod, if the instance types that meet them are not offered.
pub fn unoffered<'e>(event: &'e Event, named: &str) -> Option<Vec<UnmetRequirement<'e>>> {
    asked(event, named, &UNOFFERED)
}

fn asked<'e>(event: &'e Event, named: &str, reasons: &[&str]) -> Option<Vec<UnmetRequirement<'e>>> {
    let mut parts = of_pool(event, named);
    let is_so = |part: &&str| reasons.iter().any(|reason| part.contains(reason)) && !part.contains(NO_ZONE_LEFT);
    let part = parts.find(is_so)?;
    let (_, rest) = part.split_once("requirements=").or_else(|| part.split_once("and requirements "))?;
    let list = rest.split(", resources=").next()?.split(" (").next()?;
    let entry = |entry: &'e str| {
        let (key, value) = entry.split_once(' ')?;
        let listed = value.strip_prefix("In [").and_then(|rest| rest.split(']').next());
        let whole = listed.filter(|values| !values.contains(" others"));
        Some((key, whole.map(|values| values.split(' ').collect())))
    };
    list.split(", ").map(entry).collect()
}

/// The sum that a pod and the DaemonSets request on one node, if no instance type that a NodePool allows has as much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortfall<'e> {
    /// Resources and quantities. If they differ by instance type, these are the least.
    pub total: Vec<(&'e str, &'e str)>,
    /// The part of the DaemonSets, which versions before 1.14 report.
    pub overhead: Option<Vec<(&'e str, &'e str)>>,
    /// The most, if they differ by instance type.
    pub most: Vec<(&'e str, &'e str)>,
}

/// Karpenter's reasons if every instance type lacks resources, or at least every one that meets the other requirements.
///
/// Karpenter checks in this order. If an instance type met the requirements and was large enough, Karpenter would
/// launch it or give a reason of `UNOFFERED`. So a later reason means that all instance types that meet the
/// requirements are too small.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go `FailureReason`, `InstanceTypeFilterError`
/// (v1.0.5, v1.4.0, v1.14.1).
const TOO_SMALL: [&str; 4] = [
    "no instance type has enough resources",
    "the required offering had the required resources",
    "which had enough resources and the required offering met",
    "no instance type met the requirements/resources/offering tuple",
];
/// Karpenter's reasons if, in addition, none meets the requirements or none is offered.
const ALSO_TOO_SMALL: [&str; 2] = ["no instance type had enough resources", "or had enough resources"];

/// The resources that are requested on a node of the NodePool, if no instance type has enough of them.
pub fn shortfall<'e>(event: &'e Event, named: &str) -> Option<Shortfall<'e>> {
    let mut parts = of_pool(event, named);
    let part = parts.find(|part| TOO_SMALL.iter().chain(&ALSO_TOO_SMALL).any(|reason| part.contains(reason)))?;
    let total = ["resources={", "resources=min={", "satisfied resources {"]
        .into_iter()
        .find_map(|before| listed(part, before))?;
    let most = listed(part, ", max={").unwrap_or_else(|| total.clone());
    Some(Shortfall { total, overhead: listed(part, "daemonset overhead={"), most })
}

/// The requested resources in a message before 0.26, which does not say whether resources or requirements exclude every
/// instance type.
/// Source: core pkg/controllers/provisioning/scheduling/machine.go `Add` (v0.25.0, v0.27.5).
pub fn unsatisfied<'e>(event: &'e Event, named: &str) -> Option<Shortfall<'e>> {
    let part = of_pool(event, named).find(|part| part.contains("no instance type satisfied resources {"))?;
    let total = listed(part, "satisfied resources {").filter(|_| !part.trim_end().ends_with(')'))?;
    Some(Shortfall { most: total.clone(), total, overhead: None })
}

/// The combined requirements of a NodePool and a pod, if instance types meet them and only resources are short.
pub fn outsized<'e>(event: &'e Event, named: &str) -> Option<Vec<UnmetRequirement<'e>>> {
    asked(event, named, &TOO_SMALL)
}

/// The NodeClaim that Karpenter expects a pod on.
/// Source: core pkg/controllers/provisioning/scheduling/events.go `NominatePodEvent` (v1.0.5, v1.14.1).
pub fn nominated(event: &Event) -> Option<&str> {
    let (_, claim) =
        event.message.split_once("should schedule on: nodeclaim/").filter(|_| event.reason == "Nominated")?;
    claim.split(',').next()
}

/// Karpenter's reason if a pod's topologySpreadConstraints exclude the NodePool's zones.
/// Source: core pkg/controllers/provisioning/scheduling/topology.go `topologyError` (v1.0.5, v1.14.1).
const UNSPREAD: &str = "unsatisfiable topology constraint for topology spread, key=topology.kubernetes.io/zone ";

/// Karpenter's reason if a pod's podAffinity excludes them.
/// core pkg/controllers/provisioning/scheduling/topologygroup.go `TopologyType.String` (v1.0.5, v1.14.1).
const UNACCOMPANIED: &str = "unsatisfiable topology constraint for pod affinity, key=topology.kubernetes.io/zone ";

/// The zones that a NodePool leaves to a pod, in a reason about its spread or affinity. `None` if Karpenter does not
/// list them.
pub fn left_to_spread(part: &str) -> Option<Vec<&str>> {
    values(part.split_once(OF_NODE)?.1)
}

/// Comes before the zones that are left to the pod: the NodePool's. If Karpenter adds the volumes' zones to the
/// NodeClaim and not to the pod, they narrow these zones.
/// Sources: core pkg/controllers/provisioning/scheduling/topology.go `AddRequirements`,
/// pkg/controllers/provisioning/scheduling/nodeclaim.go `tryVolumeAlternative` (v1.14.1, v1.15.0).
const OF_NODE: &str = "nodeDomains = topology.kubernetes.io/zone ";
const OF_POD: &str = "podDomains = topology.kubernetes.io/zone ";

/// The zones that a pod's spread requires next, because they have the fewest pods, and the zones that the NodePool
/// allows. `None` if the NodePool allows one of the former.
pub fn unspread(part: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    let (_, spread) = part.split_once(UNSPREAD)?;
    let (allowed, wanted) = (left_to_spread(spread)?, fewest(spread)?);
    let is_apart = wanted.iter().all(|zone| !allowed.contains(zone)) && bound(part).is_none();
    is_apart.then_some((wanted, allowed))
}

/// Whether no zone at all counts for a pod's spread, for any NodePool in the message.
pub fn counts_nothing(event: &Event) -> bool {
    said(event)
        .is_some_and(|said| said.split(UNSPREAD).skip(1).any(|spread| spread.starts_with("(counts = , podDomains")))
}

/// Karpenter's reason if a pod has to be in a zone that the NodePool does not allow.
/// Source: core pkg/scheduling/requirements.go `badKeyError` (v1.0.5, v1.14.1).
const OF_NO_ZONE: &str = "key topology.kubernetes.io/zone, topology.kubernetes.io/zone ";
/// Karpenter's text if no zone is left because the zone requirements exclude each other.
/// Source: core pkg/scheduling/requirement.go `String` (v1.0.5, v1.14.1).
const NO_ZONE_LEFT: &str = "topology.kubernetes.io/zone DoesNotExist";

/// The zones that a pod is bound to, if they keep it off a NodePool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound<'e> {
    /// To several at once.
    Apart,
    /// To these, and the NodePool allows those.
    Outside { zones: Vec<&'e str>, allowed: Vec<&'e str> },
    /// To these, and its topology spread wants one of those next.
    Unspread { zones: Vec<&'e str>, wanted: Vec<&'e str> },
    /// To these, and the pods that its podAffinity wants it beside are in those.
    Unaccompanied { zones: Vec<&'e str>, friends: Vec<&'e str> },
}

/// The zones that keep a pod off the NodePool, from its own fields or its volumes. Karpenter adds the volumes' zones to
/// the pod's requirements.
/// Source: core pkg/controllers/provisioning/scheduling/volumetopology.go `Inject` (v1.0.5, v1.14.1).
pub fn bound(part: &str) -> Option<Bound<'_>> {
    if part.contains(NO_ZONE_LEFT) {
        return Some(Bound::Apart);
    }
    if let Some((_, rest)) = part.split_once(OF_NO_ZONE) {
        let (zones, allowed) = rest.split_once(NOT_IN)?;
        return Some(Bound::Outside { zones: values(zones)?, allowed: values(allowed)? });
    }
    bound_beside_pods(part, OF_POD)
}

const NOT_IN: &str = " not in topology.kubernetes.io/zone ";

/// The zones that a NodePool and a pod leave, in a reason about required zones. `None` if Karpenter does not list them.
pub fn left_to_requirement(part: &str) -> Option<Vec<&str>> {
    values(part.split_once(OF_NO_ZONE)?.1.split_once(NOT_IN)?.1)
}

/// Whether the volumes' zones do not fit, and not the pod's own, which Karpenter compares first.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go `tryVolumeAlternative` (v1.14.1, v1.15.0).
pub fn is_about_volumes(part: &str) -> bool {
    part.contains("incompatible volume requirements")
}

/// The zones that are left to a pod in a NodePool, if its spread or affinity excludes all of them. They may be the
/// NodePool's, or those of the pod's volumes.
pub fn bound_on_node(part: &str) -> Option<Bound<'_>> {
    bound_beside_pods(part, OF_NODE)
}

fn bound_beside_pods<'e>(part: &'e str, before: &str) -> Option<Bound<'e>> {
    let own = |told: &'e str| values(told.split_once(before)?.1);
    if let Some((_, told)) = part.split_once(UNACCOMPANIED) {
        let (zones, friends) = (own(told)?, inhabited(told)?);
        let is_apart = !friends.is_empty() && friends.iter().all(|zone| !zones.contains(zone));
        return is_apart.then_some(Bound::Unaccompanied { zones, friends });
    }
    let (_, spread) = part.split_once(UNSPREAD)?;
    let (zones, wanted) = (own(spread)?, fewest(spread)?);
    let is_apart = wanted.iter().all(|zone| !zones.contains(zone));
    is_apart.then_some(Bound::Unspread { zones, wanted })
}

/// `In [a b]`; of more than five the rest are only counted.
fn values(text: &str) -> Option<Vec<&str>> {
    let values: Vec<&str> = text.strip_prefix("In [")?.split(']').next()?.split(' ').collect();
    (!values.contains(&"and")).then_some(values)
}

/// The zones of a spread that have the fewest pods.
fn fewest(spread: &str) -> Option<Vec<&str>> {
    let counts = counts(spread)?;
    let fewest = counts.iter().map(|(_, count)| *count).min()?;
    Some(counts.iter().filter(|(_, count)| *count == fewest).map(|(zone, _)| *zone).collect())
}

/// The zones that have a pod of those that count.
fn inhabited(told: &str) -> Option<Vec<&str>> {
    Some(counts(told)?.into_iter().filter(|(_, count)| *count > 0).map(|(zone, _)| zone).collect())
}

/// The zones, and how many pods that count each of them has.
fn counts<'e>(told: &'e str) -> Option<Vec<(&'e str, u32)>> {
    let counts = told.strip_prefix("(counts = ")?.split(", podDomains").next()?;
    // Before 0.28 as Go prints a map: core v0.27.5 pkg/controllers/provisioning/scheduling/topologygroup.go.
    if let Some(map) = counts.strip_prefix("map[").and_then(|map| map.strip_suffix(']')) {
        let count = |entry: &'e str| {
            let (zone, count) = entry.split_once(':')?;
            Some((zone, count.parse::<u32>().ok()?))
        };
        return map.split(' ').map(count).collect();
    }
    // Of more than 25 zones the rest are only counted.
    let count = |entry: &'e str| {
        let (zone, count) = entry.split_once(": ")?;
        Some((zone, count.parse::<u32>().ok()?))
    };
    let entries = counts.split(", ").flat_map(|entry| entry.split(" and "));
    entries.map(count).collect()
}

/// `"cpu":"100m","pods":"4"` up to the brace that ends it.
fn listed<'e>(part: &'e str, before: &str) -> Option<Vec<(&'e str, &'e str)>> {
    let list = part.split_once(before)?.1.split('}').next()?;
    let entry = |entry: &'e str| entry.trim_matches('"').split_once("\":\"");
    list.split(',').filter(|entry| !entry.is_empty()).map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::{PlacementObstacle, label_in, label_without_pool, refusals, shortfall, unmet, unnamed};
    use crate::objects::Event;

    fn of(message: &str) -> Vec<(String, PlacementObstacle)> {
        let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
        refusals(&event).map(|(pool, refusal)| (pool.to_owned(), refusal)).collect()
    }

    /// As core 1.0.5, 1.4.0 and 1.14.1 write them.
    #[test]
    fn each_version_names_its_nodepools() {
        let limits = vec![("batch".to_owned(), PlacementObstacle::Limits)];
        let types = vec![("batch".to_owned(), PlacementObstacle::NoInstanceType)];
        for (message, named) in [
            (r#"Failed to schedule pod, all available instance types exceed limits for nodepool: "batch""#, &limits),
            (r#"Failed to schedule pod, all available instance types exceed limits for nodepool "batch""#, &limits),
            (
                "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=batch)",
                &limits,
            ),
            ("Failed to schedule pod, node limits have been exhausted for nodepool (NodePool=batch)", &limits),
            (
                r#"Failed to schedule pod, incompatible with nodepool "other", daemonset overhead={"pods":"3"}, label "team" does not have known values; incompatible with nodepool "batch", daemonset overhead={"pods":"3"}, no instance type satisfied resources {"pods":"4"} and requirements karpenter.sh/nodepool In [batch] (no instance type has the required offering)"#,
                &types,
            ),
            (
                "Failed to schedule pod, no instance type met all requirements, requirements=karpenter.sh/nodepool In \
                 [batch], kubernetes.io/os In [linux], resources={}",
                &types,
            ),
            (r#"Failed to schedule pod, incompatible with nodepool "batch", did not tolerate taint"#, &vec![]),
            (r#"all available instance types exceed limits for nodepool: "batch""#, &vec![]),
            (
                r#"Failed to schedule pod, incompatible with nodepool "gpu", did not tolerate nvidia.com/gpu=:NoSchedule; incompatible with nodepool "batch", daemonset overhead={"pods":"3"}, incompatible requirements, label "team" does not have known values (typo of "team-name"?)"#,
                &vec![("batch".to_owned(), PlacementObstacle::Label)],
            ),
            (
                r#"Failed to schedule pod, incompatible with nodepool "batch", did not tolerate fsx.csi.aws.com/agent-not-ready=:NoExecute"#,
                &vec![("batch".to_owned(), PlacementObstacle::StartupTaint)],
            ),
        ] {
            assert_eq!(of(message), *named, "{message}");
        }
    }

    #[test]
    fn a_label_counts_without_its_nodepool_if_no_other_reason_is_given() {
        let label = |message: &str| {
            let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
            label_without_pool(&event).and_then(label_in).map(str::to_owned)
        };
        let taint = "did not tolerate taint (taint=CriticalAddonsOnly:NoSchedule)";
        let unknown = "incompatible requirements, label \"team\" does not have known values";
        assert_eq!(label(&format!("Failed to schedule pod, {taint}; {unknown}")).as_deref(), Some("team"));
        for other in [
            format!("Failed to schedule pod, {unknown}; node limits have been exhausted for nodepool (NodePool=batch)"),
            format!("Failed to schedule pod, incompatible with nodepool \"batch\", {unknown}"),
            format!("Failed to schedule pod, {taint}"),
        ] {
            assert_eq!(label(&other), None, "{other}");
        }
    }

    #[test]
    fn reasons_without_a_nodepool_are_told_from_those_with_one() {
        let unnamed = |message: &str| {
            let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
            unnamed(&event).map(|reason| reason.obstacle).collect::<Vec<_>>()
        };
        let taint = "did not tolerate taint (taint=fsx.csi.aws.com/agent-not-ready:NoExecute)";
        let zone = "key topology.kubernetes.io/zone, topology.kubernetes.io/zone In [c] not in \
                    topology.kubernetes.io/zone In [a b]";
        let limits = "node limits have been exhausted for nodepool (NodePool=batch)";
        let all = format!("Failed to schedule pod, {taint}; incompatible volume requirements, {zone}; {limits}");
        assert_eq!(unnamed(&all), [PlacementObstacle::StartupTaint, PlacementObstacle::Zone]);
        // Before 1.5 the second reason has the NodePool of the first.
        for other in [
            format!("Failed to schedule pod, incompatible with nodepool \"batch\", {taint}; {taint}; {zone}"),
            "Failed to schedule pod, did not tolerate taint (taint=team=web:NoSchedule)".to_owned(),
            format!("Failed to schedule pod, {limits}"),
        ] {
            assert_eq!(unnamed(&other), [], "{other}");
        }
    }

    #[test]
    fn what_is_unmet_is_read_in_the_words_of_each_version() {
        let unmet = |message: &str| {
            let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
            unmet(&event, "batch").map(|unmet| format!("{unmet:?}"))
        };
        let read = Some(r#"[("karpenter.sh/nodepool", Some(["batch"])), ("node.kubernetes.io/instance-type", Some(["a", "b"])), ("x", None)]"#.to_owned());
        for message in [
            r#"Failed to schedule pod, incompatible with nodepool "batch", daemonset overhead={"pods":"3"}, no instance type satisfied resources {"pods":"4"} and requirements karpenter.sh/nodepool In [batch], node.kubernetes.io/instance-type In [a b], x Exists >4 (no instance type met all requirements)"#,
            r#"Failed to schedule pod, incompatible with nodepool "other", did not tolerate taint; incompatible with nodepool "batch", no instance type met all requirements, requirements=karpenter.sh/nodepool In [batch], node.kubernetes.io/instance-type In [a b], x In [1 2 3 4 5 and 3 others], resources={"pods":"4"}"#,
        ] {
            assert_eq!(unmet(message), read, "{message}");
        }
        for other in [
            r#"Failed to schedule pod, incompatible with nodepool "batch", no instance type has enough resources, requirements=karpenter.sh/nodepool In [batch], resources={}"#,
            r#"Failed to schedule pod, incompatible with nodepool "more", no instance type met all requirements, requirements=karpenter.sh/nodepool In [more], resources={}"#,
        ] {
            assert_eq!(unmet(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_too_much_is_read_in_the_words_of_each_version() {
        let read = |message: &str| {
            let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
            shortfall(&event, "batch").map(|short| format!("{:?} {:?}", short.total, short.overhead))
        };
        for (message, told) in [
            (
                r#"Failed to schedule pod, incompatible with nodepool "other", daemonset overhead={"cpu":"9"}, did not tolerate taint; incompatible with nodepool "batch", daemonset overhead={"pods":"3"}, no instance type satisfied resources {"cpu":"8","pods":"4"} and requirements karpenter.sh/nodepool In [batch] (no instance type has enough resources)"#,
                r#"[("cpu", "8"), ("pods", "4")] Some([("pods", "3")])"#,
            ),
            (
                r#"Failed to schedule pod, incompatible with nodepool "batch", daemonset overhead={}, no instance type had enough resources or had a required offering, requirements=karpenter.sh/nodepool In [batch], resources={"cpu":"8"}"#,
                r#"[("cpu", "8")] Some([])"#,
            ),
            (
                r#"Failed to schedule pod, no instance type has enough resources, requirements=karpenter.sh/nodepool In [batch], resources=min={"cpu":"8"}, max={"cpu":"9"}"#,
                r#"[("cpu", "8")] None"#,
            ),
            // Said only after none was found that meets the requirements and is large enough.
            (
                r#"Failed to schedule pod, no instance type which had enough resources and the required offering met the scheduling requirements, requirements=karpenter.sh/nodepool In [batch], resources={"cpu":"8"}"#,
                r#"[("cpu", "8")] None"#,
            ),
        ] {
            assert_eq!(read(message).as_deref(), Some(told), "{message}");
        }
        for other in [
            r#"Failed to schedule pod, no instance type met all requirements, requirements=karpenter.sh/nodepool In [batch], resources={"cpu":"8"}"#,
            r#"Failed to schedule pod, no instance type has enough resources, requirements=karpenter.sh/nodepool In [more], resources={"cpu":"8"}"#,
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
