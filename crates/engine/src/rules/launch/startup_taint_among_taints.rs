//! A taint that an agent removes from the Node when it runs is among the NodePool's permanent taints.

use crate::rules::prelude::*;
use crate::upstream::startup_taint;

rule! {
    cause: StartupTaintAmongTaints,
    summary: "The NodePool has a startup taint among its permanent taints, so Karpenter launches no node for any pod",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let refused = case.unplaced().find_map(|told| Some((told.refused_by_startup_taint(pool)?, told)));
    let (taint, told) = refused?;
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
    .change("Move the taint", format!("kubectl edit nodepool {name}"))
    .into()
}
