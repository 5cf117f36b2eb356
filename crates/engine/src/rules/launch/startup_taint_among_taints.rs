//! A taint that an agent takes from the Node once it runs stands among the NodePool's lasting taints.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::upstream::startup_taint;

pub static RULE: Rule = Rule {
    cause: "StartupTaintAmongTaints",
    summary: "The NodePool has a startup taint among its lasting taints, so Karpenter makes no machine for any pod",
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
            "NodePool {name} launches nothing for pods that do not tolerate {taint}, as {} does not: the taint is one that {remover} removes, and stands among spec.template.spec.taints, not startupTaints.",
            pod.name
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.template.spec.taints",
            taint.to_string(),
            "Karpenter takes it for a taint that stays, and makes machines only for pods that tolerate it",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", pod.name),
        "message",
        told.event.said(),
        "but for this taint the pod could go there",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.taints"))
    .fix(format!("Move {taint} from taints to startupTaints: Karpenter then expects it to go."))
    .step(Risk::Mutating, "Move the taint", Some(format!("kubectl edit nodepool {name}")))
    .into()
}
