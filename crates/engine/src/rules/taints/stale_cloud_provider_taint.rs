//! The cloud controller did its work, but its taint is on the Node: another writer re-added it.

use crate::explain::taint_writer::naming_last_taint_writer;
use crate::facts::cloud_controller_traces::traces;
use crate::rules::prelude::*;
use crate::upstream::cloud_controller;
use crate::upstream::karpenter::UNINITIALIZED_TAINT;

/// `remediate` fixes it if you turn that on.
pub const CAUSE: &str = "StaleCloudProviderTaint";

rule! {
    cause: StaleCloudProviderTaint,
    summary: "The cloud controller initialized the Node, but another writer re-added its uninitialized taint",
    stages: [Initialize],
    reads: [Events, NodeClasses],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let Some(taint) = node.taint(UNINITIALIZED_TAINT) else {
        return Some(Opinion::ruled_out(node, format!("Node {} does not carry {UNINITIALIZED_TAINT}", node.name())));
    };
    let traces = traces(case, node);
    if traces.is_empty() {
        return None;
    }
    let name = node.name();
    let writer = cloud_controller::last_taint_writer(node);
    let by = writer.map_or_else(String::new, |w| format!("; the taint list was last written by {}", w.writer()));
    let is_proven = cloud_controller::has_labelled(node);
    let has = if is_proven { "has" } else { "seems to have" };
    let summary = format!(
        "Node {name} carries {taint} although the cloud controller {has} initialized it: another writer re-added the \
         taint{by}."
    );
    let object = format!("Node/{name}");
    let finding = Finding::new(
        if is_proven { Confidence::Certain } else { Confidence::Likely },
        summary,
        Evidence::new(
            &object,
            "spec.taints",
            taint.to_string(),
            "the cloud controller removes this taint in the update that sets its labels",
        ),
    )
    .with_all(traces)
    .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
    .fix("Remove the stale taint, which disrupts no pod. Then find the component that re-added it.")
    .inspect(
        "See which component wrote the labels and which last wrote the taint list",
        format!("kubectl get node {name} --show-managed-fields -o yaml"),
    )
    .step(Risk::LowRisk, "Remove the taint", Some(format!("kubectl taint node {name} {UNINITIALIZED_TAINT}-")));
    naming_last_taint_writer(finding, node).into()
}
