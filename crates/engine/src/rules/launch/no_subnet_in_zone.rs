//! A NodePool that allows only zones without a subnet of its node class: no instance type is available there.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::explain::commands;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "NoSubnetInZone",
    summary: "The NodePool allows only zones that have no subnet of its node class",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NoSubnetInZone.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool), Some(class)) = (case.claim, case.pool(), case.class()) else { return Opinion::Silent };
    let Some(zones) = pool.zones_without_subnet(class).filter(|zones| zones.all) else { return Opinion::Silent };
    if case.unplaced().next().is_none() {
        return Opinion::Silent;
    }
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
    .step(Risk::Mutating, "Allow the zones that have a subnet", Some(format!("kubectl edit nodepool {name}")))
    .step(Risk::Mutating, "Or select another subnet", Some(commands::edit(class)))
    .into()
}
