//! A taint that an agent removes from the Node when it runs is among the NodePool's permanent taints.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::upstream::startup_taint;

pub static RULE: Rule = Rule {
    cause: "StartupTaintAmongTaints",
    summary: "The NodePool has a startup taint among its permanent taints, so Karpenter launches no node for any pod",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/StartupTaintAmongTaints.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let refused = case.unplaced().find_map(|told| Some((told.refused_by_startup_taint(pool)?, told)));
    let Some((taint, told)) = refused else { return Opinion::Silent };
    let (name, pod) = (pool.name(), &told.event.involved_object);
    let remover = startup_taint::owner(taint).map_or("an agent", |owner| owner.name);
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for pods that do not tolerate {taint}, such as {}. {remover} removes \
             this taint, but the NodePool lists it under spec.template.spec.taints instead of startupTaints.",
            pod.name
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.taints",
            taint.to_string(),
            "Karpenter treats the taint as permanent, and launches nodes only for pods that tolerate it",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", pod.name),
        "message",
        told.event.said(),
        "without this taint the pod could go there",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.taints"))
    .fix(format!("Move {taint} from taints to startupTaints: Karpenter then expects it to go."))
    .step(Risk::Mutating, "Move the taint", Some(format!("kubectl edit nodepool {name}")))
    .into()
}
