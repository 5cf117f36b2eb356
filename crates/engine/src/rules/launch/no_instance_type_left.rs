//! No instance type meets a NodePool's own requirements, or its volume excludes all of them, although pods wait for it.

use crate::case::unplaced::Unplaced;
use crate::explain::commands;
use crate::objects::{NodeClass, NodePool, Requirement};
use crate::rules::prelude::*;
use crate::upstream::overhead::GIB;
use crate::upstream::unplaced::leaves_no_type_for_min_values;
use chrono::TimeDelta;

rule! {
    cause: NoInstanceTypeLeft,
    summary: "No instance type meets the NodePool's requirements, or its volume excludes all of them, and pods wait \
              for it",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeClaims, Events, Pods],
    versions: "all",
}

/// Source: AWS, "Create a node pool for EKS Auto Mode": more than one CPU, and none of these sizes.
const NOT_IN_AUTO_MODE: [&str; 3] = ["nano", "micro", "small"];

/// Karpenter offers what EC2 had no capacity for again after three minutes.
/// Source: karpenter-provider-aws v1.14.1 pkg/cache/cache.go `UnavailableOfferingsTTL`.
const NOT_FOR_CAPACITY: TimeDelta = TimeDelta::minutes(15);

/// Instance types meet the requirements, but none is offered in the allowed places.
fn unoffered(pool: &NodePool, told: &Unplaced) -> Finding {
    let name = pool.name();
    let asked: Vec<String> = pool.spec.template.spec.requirements.iter().map(Requirement::shown).collect();
    let asked = asked.join(", ");
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: Karpenter knows no offering (zone, capacity type, price) of the \
             instance types that meet its requirements ({asked})."
        ),
        Evidence::new(
            format!("Event Pod/{}", told.event.involved_object.name),
            "message",
            told.event.said(),
            "the pod itself requires no zone and no type, and Karpenter did not ask EC2 for capacity",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template.spec.requirements",
        asked,
        "an offering is a type in a zone with a subnet of the class, with a capacity type and a known price",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(
        "Allow a zone (with a subnet of the node class), a capacity type or instance types that the region has \
         together. Without a route to the price list, as in an isolated VPC, Karpenter knows only its built-in prices. \
         Newer instance types then need a newer Karpenter, or an endpoint for the pricing API.",
    )
    .ask_aws(
        "Which zones offer these instance types?",
        "aws ec2 describe-instance-type-offerings --location-type availability-zone --query \
         'InstanceTypeOfferings[].[InstanceType,Location]'"
            .to_owned(),
    )
    .change("Change the requirements", format!("kubectl edit nodepool {name}"))
}

/// More of the volume is reserved than it has, and a type with a negative amount of anything fits no pod.
fn without_storage(case: &Case, pool: &NodePool) -> Option<Finding> {
    let class = case.class()?;
    let (told, volume) = case.unplaced().find_map(|told| Some((told, told.without_storage(pool, class)?)))?;
    let (name, of_class) = (pool.name(), format!("{} {}", class.kind, class.name()));
    let described = class.data_volume();
    let at = described.and_then(|own| class.spec.block_device_mappings.iter().position(|other| other == own));
    let marked = described.filter(|volume| volume.root_volume);
    let device = described.and_then(|volume| volume.device_name.as_deref()).unwrap_or("the volume of its images");
    let because = if marked.is_some() { " (rootVolume: true)" } else { "" };
    let gib = |bytes: f64| format!("{}Gi", (bytes / GIB * 100.0).round() / 100.0);
    let kept = volume.kept_back;
    let parts = format!(
        "kubeReserved {}, systemReserved {}, eviction threshold {}",
        gib(kept.kube),
        gib(kept.system),
        gib(kept.eviction)
    );
    let field = at.map_or_else(|| "spec.kubelet".to_owned(), |at| format!("spec.blockDeviceMappings[{at}]"));
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: Karpenter counts {device} of {of_class}{because} as the ephemeral \
             storage of every node, {}Gi, of which {} are reserved ({parts}). The result is negative, so it excludes \
             every instance type, whatever pods request.",
            volume.gib,
            gib(kept.total())
        ),
        Evidence::new(
            format!("{}/{}", class.kind, class.name()),
            field.clone(),
            format!("{}Gi", volume.gib),
            format!("less {}, whatever the type", gib(kept.total())),
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", told.event.involved_object.name),
        "message",
        told.event.said(),
        "Karpenter has no instance type left",
    ))
    .blaming(Blame::class(class).field(field));
    let fix = if marked.is_some() {
        "Remove rootVolume from that device, or set it on the volume that stores images and pods (Bottlerocket: \
         /dev/xvdb). Otherwise give the device a size that leaves room."
    } else {
        "Give the volume of images and pods a size that leaves room, or reserve less ephemeral-storage in spec.kubelet."
    };
    Some(finding.fix(fix).change("Correct the volume", commands::edit(class)))
}

/// The NodePool lists families that its own requirement on GPUs excludes, and pods ask for them.
fn without_gpu(case: &Case, pool: &NodePool) -> Option<Finding> {
    let (told, (families, gpu)) = case.unplaced().find_map(|told| Some((told, told.without_gpu(pool)?)))?;
    let (name, families, gpu) = (pool.name(), families.join(", "), gpu.shown());
    let pod = &told.event.involved_object;
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for Pod {}/{}: its requirement {gpu} excludes the family {families} that \
             it lists, because these instance types have no GPU.",
            pod.namespace.as_deref().unwrap_or("default"),
            pod.name
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.requirements",
            format!("family {families}, {gpu}"),
            "an instance type without a GPU does not have this label",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", pod.name),
        "message",
        told.event.said(),
        "the pod leaves no other family of those that the NodePool lists",
    ));
    let finding = finding
        .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
        .fix(
            "Remove the family from this NodePool, and serve it with a NodePool of its own that has no requirement on \
             GPUs.",
        )
        .change("Change the requirements", format!("kubectl edit nodepool {name}"));
    Some(finding)
}

/// Karpenter's word that no instance type meets the NodePool's requirements, of a pod that adds nothing to them.
fn unmet(case: &Case, pool: &NodePool) -> Option<Evidence> {
    let told = case.unplaced().find(|u| u.unmet_by_itself(pool))?;
    let object = format!("Event Pod/{}", told.event.involved_object.name);
    let because = "the pod itself requires nothing that an instance type decides";
    Some(Evidence::new(object, "message", told.event.said(), because))
}

/// Whether EC2 refused a NodeClaim of the NodePool for capacity. Karpenter then leaves the offering out for a while.
fn lacks_capacity(case: &Case, pool: &NodePool) -> bool {
    case.cluster.claim_events_of_pool(pool.name()).any(|e| e.reason == "InsufficientCapacityError")
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    // Another rule reports which instance types those have: `NoReservedCapacity`.
    if pool.is_reserved_only() {
        return None;
    }
    if let Some(said) = unmet(case, pool) {
        return left_none(case, pool, said, false).into();
    }
    if let Some(finding) = without_gpu(case, pool).or_else(|| without_storage(case, pool)) {
        return finding.into();
    }
    let skipped = case.unplaced().find_map(|told| told.skipped(case.cluster, pool));
    let told = case.unplaced().find(|told| told.unoffered_by_itself(pool));
    if skipped.is_none() && told.is_none() || lacks_capacity(case, pool) {
        return None;
    }
    let settled = case.wait.since.checked_add_signed(NOT_FOR_CAPACITY);
    if let Some(at) = settled.filter(|at| case.now < *at) {
        return Some(Opinion::LookAgain(at));
    }
    let Some(event) = skipped else { return unoffered(pool, &told?).into() };
    let object = format!("Event NodePool/{}", pool.name());
    let said = Evidence::new(object, "message", event.said(), "Karpenter skips this NodePool for every pod");
    left_none(case, pool, said, leaves_no_type_for_min_values(event)).into()
}

/// No instance type meets the requirements, or too few with different values do.
fn left_none(case: &Case, pool: &NodePool, said: Evidence, of_min_values: bool) -> Finding {
    let name = pool.name();
    // A requirement that every instance type of a Linux cluster meets excludes none.
    let excludes = |r: &&Requirement| !matches!(r.key.as_str(), "kubernetes.io/os" | "karpenter.sh/capacity-type");
    let asked: Vec<String> =
        pool.spec.template.spec.requirements.iter().filter(excludes).map(Requirement::shown).collect();
    let asked = asked.join(", ");
    let small = pool
        .spec
        .template
        .spec
        .requirements
        .iter()
        .flat_map(|r| r.values.iter())
        .any(|value| NOT_IN_AUTO_MODE.contains(&value.rsplit('.').next().unwrap_or_default()));
    let auto = case.class().is_some_and(NodeClass::is_auto_mode) && small;
    let why = match (auto, of_min_values) {
        (true, _) => ". EKS Auto Mode launches no nano, micro or small ones",
        (false, true) => ", with as many different values as their minValues require",
        (false, false) => "",
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!("NodePool {name} launches nothing: no instance type meets its requirements ({asked}){why}."),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.requirements",
            asked,
            "an instance type must meet all of them at once, and have a price in the region",
        ),
    )
    .with(said)
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"));
    let fix = if auto {
        "Allow instance types of size medium or larger with more than one CPU."
    } else if of_min_values {
        "Lower minValues, or allow more instance types. Instance types that the region does not offer do not count."
    } else {
        "Remove the requirement that excludes the others. Look for two that no type meets together (an architecture \
         and the families of another), a type or size that the region does not have, or a misspelled value."
    };
    finding
        .fix(fix)
        .ask_aws(
            "Which instance types does the region have?",
            "aws ec2 describe-instance-type-offerings --query 'InstanceTypeOfferings[].InstanceType'".to_owned(),
        )
        .change("Change the requirements", format!("kubectl edit nodepool {name}"))
}
