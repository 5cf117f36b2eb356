//! Karpenter registered the Node and removed its taint, but another writer re-added it.

use crate::explain::taint_writer::naming_last_taint_writer;
use crate::rules::prelude::*;
use crate::upstream::cloud_controller::last_taint_writer;
use crate::upstream::karpenter::UNREGISTERED_TAINT;

rule! {
    cause: UnregisteredTaintPutBack,
    summary: "The Node is registered, but another writer re-added the unregistered taint",
    stages: [Initialize, Ready],
    reads: [],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, _) = (case.node?, case.claim?);
    let Some(taint) = node.taint(UNREGISTERED_TAINT) else {
        return Some(Opinion::ruled_out(node, format!("Node {} does not carry {UNREGISTERED_TAINT}", node.name())));
    };
    // Source: core pkg/controllers/nodeclaim/lifecycle/registration.go (v1.14.3): one patch sets the label and removes
    // the taint.
    if node.metadata.label("karpenter.sh/registered") != Some("true") {
        return None;
    }
    let name = node.name();
    let object = format!("Node/{name}");
    let writer = last_taint_writer(node);
    let by = writer.map_or_else(|| "another writer".to_owned(), |w| w.writer().to_owned());
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is registered and carries {taint} again, which evicts every pod: {by} re-added the taint."
        ),
        Evidence::new(
            &object,
            "spec.taints",
            taint.to_string(),
            "Karpenter removes this taint in the patch that registers the Node",
        ),
    )
    .with(Evidence::new(&object, "metadata.labels['karpenter.sh/registered']", "true", "Karpenter has sent that patch"))
    .blaming(Blame::object("v1", "Node", name).field("spec.taints"))
    .fix(
        "Remove the taint, so that pods can run there again. Then keep the other writer away from these nodes (Cluster \
         API's Machine controllers are the known one).",
    )
    .inspect(
        "See which component wrote the taint list last",
        format!("kubectl get node {name} --show-managed-fields -o yaml"),
    )
    .step(Risk::LowRisk, "Remove the taint", Some(format!("kubectl taint node {name} {UNREGISTERED_TAINT}-")));
    naming_last_taint_writer(finding, node).into()
}
