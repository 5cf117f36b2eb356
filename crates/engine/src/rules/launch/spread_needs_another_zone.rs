//! Pods have to be spread over zones, and the next one is none of those that the only NodePool for them allows.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::workload::PodWorkload;

pub static RULE: Rule = Rule {
    cause: "SpreadNeedsAnotherZone",
    summary: "Pods have to be spread to a zone that the NodePool which they ask for does not allow",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/SpreadNeedsAnotherZone.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let Some((told, (wanted, allowed))) = case.unplaced().find_map(|told| Some((told, told.spread_elsewhere(pool)?)))
    else {
        return Opinion::Silent;
    };
    let (name, wanted, allowed) = (pool.name(), wanted.join(" or "), allowed.join(", "));
    let about = &told.event.involved_object;
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let workload = PodWorkload::of(told.pod, namespace, &about.name);
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for Pod {namespace}/{}: the pod's topology spread (topologySpreadConstraints) wants zone {wanted} next, and the NodePool, which the pod asks for, allows {allowed} only.",
            about.name
        ),
        Evidence::new(
            format!("Event Pod/{}", about.name),
            "message",
            told.event.said(),
            "a zone counts for the spread as soon as any NodePool allows it, and the pod may only go to this one",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(format!(
        "Allow zone {wanted} in NodePool {name} (with a subnet of its node class), or have the pods ask for {allowed} as well (node affinity on topology.kubernetes.io/zone): then no other zone counts."
    ))
    .step(Risk::Mutating, "Allow the zone", Some(format!("kubectl edit nodepool {name}")))
    .step(
        Risk::Mutating,
        "Or ask for the zones that are there",
        Some(workload.edit()),
    )
    .into()
}
