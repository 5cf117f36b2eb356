//! A NodePool that allows only reserved capacity, but Karpenter has no usable reservation.

use crate::case::reserved_drift::{self, HeldReservation};
use crate::case::timestamp;
use crate::case::unplaced::Unplaced;
use crate::explain::commands;
use crate::objects::{CapacityReservation, NodeClass, NodePool, Pod, Requirement};
use crate::rules::prelude::*;
use std::collections::BTreeSet;

rule! {
    cause: NoReservedCapacity,
    summary: "The NodePool allows only reserved capacity, and its node class has no capacity reservation for it, or \
              none with a free place",
    stages: [Launch],
    reads: [NodePools, NodeClaims, NodeClasses, Events, Pods, Deployments],
    versions: "1.3 and later",
}

/// Why no reservation gives the NodePool a node, and what to change.
struct Lack {
    why: String,
    observed: String,
    because: &'static str,
    blame: Blame,
    fix: &'static str,
}

const IN_USE: &str = "Enlarge the reservation, or stop the instances outside of Karpenter that use it (an open \
                      reservation takes any instance of its type). Or allow on-demand beside reserved.";

fn shown(r: &CapacityReservation) -> String {
    format!("{} ({} in {})", r.id, r.instance_type, r.availability_zone)
}

fn lack(case: &Case, pool: &NodePool, class: &NodeClass) -> Lack {
    let own = format!("{} {}", class.kind, class.name());
    let selector = || Blame::class(class).field("spec.capacityReservationSelectorTerms");
    if let Some(karpenter) = case.karpenter().filter(|karpenter| karpenter.gate("ReservedCapacity") == Some(false)) {
        let (namespace, deployment) = karpenter.place();
        return Lack {
            why: format!("the feature gate ReservedCapacity of Deployment {deployment} is off"),
            observed: "absent".to_owned(),
            because: "with ReservedCapacity=false, Karpenter ignores capacity reservations",
            blame: Blame::object("apps/v1", "Deployment", deployment)
                .namespace(namespace)
                .field("spec.template.spec.containers[0].env[FEATURE_GATES]"),
            fix: "Turn the feature gate ReservedCapacity on (Helm: settings.featureGates.reservedCapacity=true), or \
                  allow another capacity type.",
        };
    }
    if class.spec.capacity_reservation_selector_terms.is_empty() {
        return Lack {
            why: format!("{own} selects no capacity reservation"),
            observed: "absent".to_owned(),
            because: "Karpenter uses only reservations that the class selects",
            blame: selector(),
            fix: "Select the reservations in capacityReservationSelectorTerms, or allow another capacity type.",
        };
    }
    let reservations = &class.status.capacity_reservations;
    if reservations.is_empty() {
        return Lack {
            why: format!("{own} selects no active capacity reservation of this account and region"),
            observed: "absent".to_owned(),
            because: "Karpenter asks EC2 each minute for the active reservations that the terms select",
            blame: selector(),
            fix: "Correct the id, tags or owner in capacityReservationSelectorTerms: Karpenter does not use a \
                  reservation that has expired, was cancelled, or begins later.",
        };
    }
    let all = reservations.iter().map(shown).collect::<Vec<_>>().join(", ");
    let requirements = &pool.spec.template.spec.requirements;
    if reservations.iter().all(|r| r.unmet(requirements).is_some()) {
        let excludes = reservations.iter().find_map(|r| r.unmet(requirements)).map(Requirement::shown);
        return Lack {
            why: format!("it requires {}, but the reservations of {own} are {all}", excludes.unwrap_or_default()),
            observed: all,
            because: "a reservation has one instance type in one zone",
            blame: Blame::object("karpenter.sh/v1", "NodePool", pool.name()).field("spec.template.spec.requirements"),
            fix: "Allow the instance types and zones of the reservations, or select other reservations.",
        };
    }
    if pool.reservations(class).next().is_none() {
        let zones: BTreeSet<&str> = class.status.subnets.iter().map(|subnet| subnet.zone.as_str()).collect();
        let zones = zones.into_iter().collect::<Vec<_>>().join(", ");
        return Lack {
            why: format!("{own} has subnets in {zones}, but none in the zone of its reservations: {all}"),
            observed: all,
            because: "Karpenter launches only in zones that have a subnet",
            blame: Blame::class(class).field("spec.subnetSelectorTerms"),
            fix: "Make subnetSelectorTerms select a subnet in the zone of the reservation.",
        };
    }
    // Others of the class may be meant for other NodePools.
    let fitting = pool.reservations(class).map(shown).collect::<Vec<_>>().join(", ");
    Lack {
        why: format!(
            "Karpenter can launch in none of the reservations of {own} that fit: {fitting}. They are in use, or EC2 \
             does not list their instance type for the region"
        ),
        observed: fitting,
        because: "they fit, but Karpenter finds no offering of them",
        blame: Blame::object("karpenter.sh/v1", "NodePool", pool.name()).field("spec.template.spec.requirements"),
        fix: IN_USE,
    }
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool), Some(class)) = (case.claim, case.pool(), case.class()) else { return None };
    // Before 0.32, no class selected any.
    if !pool.is_reserved_only() || class.is_node_template() {
        return None;
    }
    if case.wait.symptom == Symptom::DriftHeld {
        let held = reserved_drift::held_reservation(case.cluster, pool, class, case.now);
        return held.map(|held| of_drift(pool, class, &held).into());
    }
    let is_its_own = |told: &Unplaced| {
        told.lacks_reservation(pool, class) || told.unmet_by_itself(pool) || told.unoffered_by_itself(pool)
    };
    let Some(told) = case.unplaced().find(is_its_own) else {
        if case.wait.symptom != Symptom::PodsDeferred {
            return None;
        }
        let deferred = case.deferred().min_by_key(|pod| pod.metadata.creation_timestamp);
        return deferred.map(|pod| full(case, pool, class, pod).into());
    };
    let lack = lack(case, pool, class);
    let name = pool.name();
    let finding = Finding::new(
        Confidence::Certain,
        format!("NodePool {name} launches nothing: it allows only reserved capacity, and {}.", lack.why),
        Evidence::new(
            format!("{}/{}", class.kind, class.name()),
            "status.capacityReservations",
            lack.observed,
            lack.because,
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", told.event.involved_object.name),
        "message",
        told.event.said(),
        "Karpenter finds no instance type for a waiting pod",
    ))
    .blaming(lack.blame)
    .fix(lack.fix);
    to_change(finding, pool, class).into()
}

/// Karpenter's silence about a pod that only this NodePool admits: the reservations that fit are in use.
fn full(case: &Case, pool: &NodePool, class: &NodeClass, pod: &Pod) -> Finding {
    let (own, name) = (format!("{} {}", class.kind, class.name()), pool.name());
    let all = pool.reservations(class).map(shown).collect::<Vec<_>>().join(", ");
    let (namespace, pod_name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let version = case.karpenter().map_or_else(String::new, |karpenter| format!(" {}", karpenter.version));
    let because = "Karpenter defers a pod without an Event if all reservations that it may use are full";
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "NodePool {name} launches nothing for Pod {namespace}/{pod_name}: it allows only reserved capacity, and \
             Karpenter{version} puts the pod off without an Event. All reservations of {own} that fit are probably in \
             use: {all}."
        ),
        Evidence::new(format!("{}/{}", class.kind, class.name()), "status.capacityReservations", all, because),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(IN_USE);
    to_change(finding, pool, class)
}

/// The drifted nodes themselves use the reservation. Its size is not visible here.
fn of_drift(pool: &NodePool, class: &NodeClass, held: &HeldReservation) -> Finding {
    let (name, drifted, reservation) = (pool.name(), held.drifted.name(), shown(held.reservation));
    let (who, them) = match held.count {
        1 => ("the drifted node".to_owned(), "the NodeClaim"),
        count => (format!("the {count} drifted nodes"), "one of the NodeClaims"),
    };
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "Karpenter does not replace {who} of NodePool {name} (drifted since {}): it launches the replacement \
             first, and the capacity reservation probably has no free place for it. The NodePool allows only reserved \
             capacity, and NodeClaim {drifted} itself keeps its place in {reservation}.",
            timestamp(held.since)
        ),
        Evidence::new(
            format!("Event NodeClaim/{drifted}"),
            "message",
            held.event.said(),
            "Karpenter finds no offering for the pods of the drifted node, so it skips the node",
        ),
    )
    .with(Evidence::new(
        format!("NodeClaim/{drifted}"),
        "metadata.labels['karpenter.k8s.aws/capacity-reservation-id']",
        held.reservation.id.clone(),
        "the node has a place in the reservation until it is deleted",
    ))
    .with(Evidence::new(
        format!("{}/{}", class.kind, class.name()),
        "status.capacityReservations",
        reservation,
        "EC2 lists the reservation as active",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(format!(
        "Delete {them} at a quiet time: its place is then free for the new node. Or keep one place of the reservation \
         free, or allow on-demand beside reserved. From 1.15 on, the feature gate TerminateFirstDrift makes Karpenter \
         delete first."
    ))
    .destroy(
        "Free a place in the reservation. Karpenter drains the pods of the node first, and they wait for the new one",
        format!("kubectl delete nodeclaim {drifted}"),
    );
    to_change(finding, pool, class)
}

/// The steps, and the question that only EC2 can answer.
fn to_change(finding: Finding, pool: &NodePool, class: &NodeClass) -> Finding {
    let name = pool.name();
    let finding = finding
        .change("Change what the class selects", commands::edit(class))
        .change("Or what the NodePool allows", format!("kubectl edit nodepool {name}"));
    let ids: Vec<&str> = class.status.capacity_reservations.iter().map(|r| r.id.as_str()).collect();
    let of = if ids.is_empty() { String::new() } else { format!(" --capacity-reservation-ids {}", ids.join(" ")) };
    finding
        .ask_aws(
            "Which capacity reservations exist, and how much of them is free?",
            format!("aws ec2 describe-capacity-reservations{of} --query 'CapacityReservations[].[CapacityReservationId,State,InstanceType,AvailabilityZone,AvailableInstanceCount,TotalInstanceCount]'"),
        )
}
