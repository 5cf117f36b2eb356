//! Pods must be spread over zones, but the only NodePool for them does not allow the next zone.

use crate::facts::workload::PodWorkload;
use crate::rules::prelude::*;

rule! {
    cause: SpreadNeedsAnotherZone,
    summary: "The topology spread of pods requires a zone that the NodePool which they select does not allow",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let (told, (wanted, allowed)) = case.unplaced().find_map(|told| Some((told, told.spread_elsewhere(pool)?)))?;
    let (name, wanted, allowed) = (pool.name(), wanted.join(" or "), allowed.join(", "));
    let about = &told.event.involved_object;
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let workload = PodWorkload::of(told.pod, namespace, &about.name);
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for Pod {namespace}/{}: the pod's topology spread \
             (topologySpreadConstraints) requires zone {wanted} next, but the NodePool that the pod selects allows \
             only {allowed}.",
            about.name
        ),
        Evidence::new(
            format!("Event Pod/{}", about.name),
            "message",
            told.event.said(),
            "a zone counts for the spread if any NodePool allows it, but the pod may only use this one",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(format!(
        "Allow zone {wanted} in NodePool {name} (its node class needs a subnet there). Or restrict the pods \
         to {allowed} (node affinity on topology.kubernetes.io/zone): then no other zone counts."
    ))
    .change("Allow the zone", format!("kubectl edit nodepool {name}"))
    .change("Or restrict the pods to the existing zones", workload.edit())
    .into()
}
