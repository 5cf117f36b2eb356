//! The kubelet must reserve more than the machine has, so it exits again and again.

use crate::cluster_state::memo::Memo;
use crate::effective::{self, ClusterIdentity, Kind, Machine, MergeOutcome, Origin, Value};
use crate::objects::quantity;
use crate::objects::{Node, NodeClaim, NodeClass};
use crate::rules::prelude::*;
use readers::source_text;

rule! {
    cause: ReservationsExceedMachine,
    summary: "kubeReserved, systemReserved and evictionHard together exceed the machine's size, so the kubelet exits",
    stages: [Join, Initialize],
    reads: [NodeClaims, NodePools, NodeClasses, Deployments],
    versions: "all",
}

/// A resource that can be reserved, Karpenter's label with the amount that the instance type has, and the number that
/// one of the label's units is. The kubelet never finds more.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `computeRequirements`.
struct Reservable {
    name: &'static str,
    label: &'static str,
    unit: f64,
}

const RESERVABLE: [Reservable; 2] = [
    Reservable { name: "memory", label: "karpenter.k8s.aws/instance-memory", unit: 1_048_576.0 },
    Reservable { name: "cpu", label: "karpenter.k8s.aws/instance-cpu", unit: 1.0 },
];

/// One part of the reservation.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    resource: &'static str,
    /// `kubeReserved.memory`
    what: String,
    /// `2Gi`
    text: String,
    number: f64,
    origin: Origin,
    exact: bool,
}

/// The reservations in a class's text for a machine of a NodePool.
static PARTS: Memo<Vec<Part>> = Memo::new("the reservations on machines of a class and a NodePool");

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    if case.node.is_some_and(Node::is_ready) {
        return None;
    }
    if RESERVABLE.iter().all(|resource| size(claim, resource).is_none()) {
        return None;
    }
    let (pool, texts) = (claim.node_pool().unwrap_or_default(), case.texts());
    let about = format!("{}/{} {pool} {texts}", class.kind, class.name());
    let parts = case.cluster.once(&PARTS, &about, || parts(case, class));
    let (resource, has, wanted) = RESERVABLE.iter().find_map(|resource| {
        let has = size(claim, resource)?;
        let wanted: f64 = of(&parts, resource).map(|part| part.number).sum();
        (wanted > has * resource.unit).then_some((resource, has, wanted))
    })?;
    // One of no larger size joined.
    let small = |sibling: &&NodeClaim| size(sibling, resource).is_some_and(|size| size <= has);
    if let Some(sibling) = case.same_spec_siblings_joined().find(small) {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with the same reservations", sibling.name()),
        ));
    }
    let own = || of(&parts, resource);
    let largest = own().max_by(|a, b| a.number.total_cmp(&b.number))?;
    let said: Vec<String> = own().map(|part| format!("{}={}", part.what, part.text)).collect();
    let confidence = if own().all(|part| part.exact) { Confidence::Certain } else { Confidence::Likely };
    let (kind, name) = (class.kind.to_ascii_lowercase(), class.name());
    let unit = if resource.unit > 1.0 { " MiB" } else { "" };
    let told = source_text::mask(&said.join(", "));
    let summary = format!(
        "{} {name} reserves more {} than the machine has ({} of {has}{unit}: {told}), so the kubelet exits again and \
         again and the machine never becomes a usable node.",
        class.kind,
        resource.name,
        shown(wanted / resource.unit),
    );
    let blame = Blame::class(class);
    let blame = match (&largest.origin, class.spec.user_data.as_deref()) {
        (Origin::UserData(span), Some(text)) => blame.field("spec.userData").at(text, *span),
        (Origin::NodeClass(field), _) => blame.field(field),
        _ => blame,
    };
    Finding::new(
        confidence,
        summary,
        Evidence::new(
            format!("{}/{name}", class.kind),
            blame.field.clone().unwrap_or_default(),
            told,
            "invalid Node Allocatable configuration: capacity must not be less than the reservation",
        ),
    )
    .with(Evidence::new(
        case.subject(),
        format!("metadata.labels['{}']", resource.label),
        shown(has),
        "what the instance type has",
    ))
    .blaming(blame)
    .fix(
        "Reserve less, or require larger instance types in the NodePool (karpenter.k8s.aws/instance-memory, \
         instance-cpu). Karpenter does not read what userData reserves when it chooses a type.",
    )
    .change("Correct the reservation for new nodes", format!("kubectl edit {kind} {name}"))
    .into()
}

fn of<'p>(parts: &'p [Part], resource: &Reservable) -> impl Iterator<Item = &'p Part> {
    let name = resource.name;
    parts.iter().filter(move |part| part.resource == name)
}

/// How much of it the machine has, in the label's unit.
fn size(claim: &NodeClaim, resource: &Reservable) -> Option<f64> {
    claim.fixed(resource.label)?.parse::<u32>().ok().map(f64::from)
}

/// A number without needless digits.
fn shown(number: f64) -> String {
    let short = format!("{number:.2}");
    short.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The reservations of `RESERVABLE` that reach the kubelet as the text writes them.
fn parts(case: &Case, class: &NodeClass) -> Vec<Part> {
    let Some(family) = class.family() else { return Vec::new() };
    let machine = Machine {
        class,
        family,
        pool: case.pool(),
        karpenter: case.karpenter().map(|karpenter| karpenter.version),
        kubernetes: None,
        cluster: ClusterIdentity::default(),
    };
    let values = effective::resolve(&machine).values;
    let effective = values.iter().filter(|value| value.literal && value.outcome == MergeOutcome::Effective);
    let mut parts: Vec<Part> = Vec::new();
    for part in effective.filter(|value| value.kind != Kind::Cluster).flat_map(of_value) {
        // The entries of a flag that is given twice add up, and the later one of a key wins.
        parts.retain(|earlier| earlier.what != part.what);
        parts.push(part);
    }
    parts
}

/// A field's entry, or an entry of the list in a flag or in a setting of Bottlerocket.
fn of_value(value: &Value) -> Vec<Part> {
    let plain: String = value.name.chars().filter(|&c| c != '-').collect::<String>().to_ascii_lowercase();
    let (name, entry) = plain.split_once('.').map_or((plain.as_str(), None), |(name, entry)| (name, Some(entry)));
    let field = match name {
        "kubereserved" => "kubeReserved",
        "systemreserved" => "systemReserved",
        "evictionhard" => "evictionHard",
        _ => return Vec::new(),
    };
    let part = |key: &str, text: &str| {
        // kubernetes v1.36.3 pkg/kubelet/cm/helpers.go hardEvictionReservation
        let wanted = match (field, key) {
            ("evictionHard", "memory.available") => "memory",
            ("evictionHard", _) => return None,
            (_, key) => key,
        };
        let resource = RESERVABLE.iter().find(|resource| resource.name == wanted)?.name;
        let number = quantity::parse(text)?;
        let (what, text) = (format!("{field}.{key}"), text.to_owned());
        Some(Part { resource, what, text, number, origin: value.origin.clone(), exact: value.exact })
    };
    match entry {
        Some(key) => part(key, value.value.trim_matches(['"', '\''])).into_iter().collect(),
        None => value
            .value
            .split(',')
            .filter_map(|pair| pair.split_once(['=', '<']))
            .filter_map(|(key, text)| part(key.trim(), text.trim()))
            .collect(),
    }
}
