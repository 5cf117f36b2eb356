//! A NodePool that allows only zones without a subnet of its node class: no instance type is available there.

use crate::explain::commands;
use crate::rules::prelude::*;

rule! {
    cause: NoSubnetInZone,
    summary: "The NodePool allows only zones that have no subnet of its node class",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool), Some(class)) = (case.claim, case.pool(), case.class()) else { return None };
    let zones = pool.zones_without_subnet(class).filter(|zones| zones.all)?;
    case.unplaced().next()?;
    let (name, allowed, there) = (pool.name(), zones.missing.join(", "), zones.subnets.join(", "));
    let own = format!("{}/{}", class.kind, class.name());
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: it allows only zone {allowed}, but {} {} has subnets in {there}.",
            class.kind,
            class.name()
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            format!("spec.template.spec.requirements[{}].values", zones.at),
            allowed.clone(),
            "Karpenter may launch nodes only in these zones",
        ),
    )
    .with(Evidence::new(
        own,
        "status.subnets[*].zone",
        there.clone(),
        "Karpenter launches only in zones that have a subnet",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(format!("Allow {there} in the NodePool, or make subnetSelectorTerms select a subnet in {allowed}."))
    .change("Allow the zones that have a subnet", format!("kubectl edit nodepool {name}"))
    .change("Or select another subnet", commands::edit(class))
    .into()
}
