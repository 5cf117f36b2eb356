//! A NodePool that Karpenter does not launch from: it is invalid, or its node class does not exist.

use crate::case::refused_pool::stands;
use crate::explain::logged::{self, Root};
use crate::objects::{Condition, NodePool};
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: NodePoolNotReady,
    summary: "The NodePool is invalid, or its node class does not exist",
    stages: [Launch],
    reads: [NodePools, Logs],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let pool = case.pool()?;
    let Some(condition) = pool.unready() else {
        // A node's own log says nothing about its NodePool.
        let root = || logged::root(case, &[Trouble::NodePoolRefused]);
        if let Some(root) = case.claim.is_none().then(root).flatten() {
            return refused(pool, &root).into();
        }
        if pool.condition("Ready").is_some_and(Condition::is_true) {
            return Some(Opinion::ruled_out(pool, format!("NodePool {} is Ready", pool.name())));
        }
        return None;
    };
    let name = pool.name();
    let reference = &pool.spec.template.spec.node_class_ref;
    let class = format!("{} {}", reference.kind, reference.name);
    let (why, field, fix) = match condition.reason.as_str() {
        "NodeClassNotFound" => (
            format!("its {class} does not exist"),
            "spec.template.spec.nodeClassRef",
            "Create the node class, or refer to one that exists.",
        ),
        "NodeClassTerminating" => (
            format!("its {class} is being deleted"),
            "spec.template.spec.nodeClassRef",
            "Refer to another node class. A deletion cannot be undone: Karpenter keeps the class until its last \
             NodeClaim is gone, and you can create it again after that.",
        ),
        _ => (format!("it is invalid: {}", condition.message), "spec", "Correct the field that the message names."),
    };
    Finding::new(
        Confidence::Certain,
        format!("NodePool {name} launches nothing: {why}."),
        Evidence::new(
            format!("NodePool/{name}"),
            format!(r#"status.conditions[?(@.type=="{}")]"#, condition.type_),
            condition.shown(),
            "Karpenter skips a NodePool that is not Ready",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field(field))
    .fix(fix)
    .inspect("See the NodePool's conditions", format!("kubectl describe nodepool {name}"))
    .change("Correct the NodePool", format!("kubectl edit nodepool {name}"))
    .into()
}

/// Up to 0.37, only Karpenter's log says that a NodePool is invalid.
/// Source: core v0.37.0 pkg/controllers/provisioning/provisioner.go `NewScheduler`.
fn refused(pool: &NodePool, root: &Root) -> Finding {
    let name = pool.name();
    let error = root.error();
    let confidence = if stands(pool, root.fact) { Confidence::Certain } else { root.confidence() };
    Finding::new(
        confidence,
        format!(
            "NodePool {name} launches nothing, because Karpenter skips it. It is invalid: {}.",
            logged::excerpt(error)
        ),
        root.evidence(),
    )
    .blaming(
        Blame::object("karpenter.sh/v1", "NodePool", name).field(logged::path_in(error).unwrap_or("spec.template")),
    )
    .fix("Correct the field that the line names.")
    .change("Correct the NodePool", format!("kubectl edit nodepool {name}"))
}
