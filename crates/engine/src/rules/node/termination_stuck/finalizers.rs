//! Finalizers that nobody takes off: another's, or on a NodeClaim that takes no write.

use super::head;
use crate::api::{Blame, Confidence, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Meta, Node, NodeClaim, NodeClass};
use crate::rules::shared::commands;
use crate::upstream::karpenter::{CLASS_TERMINATION_FINALIZER, TERMINATION_FINALIZER};

/// A NodeClaim of before v1 whose conversion left out what v1 requires: the API server refuses every write of it, that
/// of taking the finalizer off too, and later versions of Karpenter do not take it for their own.
/// Sources: core pkg/apis/v1/nodeclaim.go `NodeClassReference` (v1.14.3), pkg/utils/nodeclaim/nodeclaim.go `IsManaged`
/// (since v1.1.0).
pub(super) fn has_no_group(claim: &NodeClaim) -> bool {
    let reference = &claim.spec.node_class_ref;
    // What was cut by hand may lack all of it.
    reference.group.is_empty() && !reference.kind.is_empty() && !reference.name.is_empty()
}

pub(super) fn refused_as_it_is(case: &Case, claim: &NodeClaim) -> Finding {
    let (name, reference) = (claim.name(), &claim.spec.node_class_ref);
    Finding::new(
        Confidence::Certain,
        format!(
            "{}: its spec.nodeClassRef has no group, which karpenter.sh/v1 requires, so the removal of Karpenter's finalizer is refused like every other write, or no Karpenter takes it for its own.",
            head(case)
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            "spec.nodeClassRef",
            format!("{{kind: {}, name: {}}}", reference.kind, reference.name),
            "group is required since v1, and the spec cannot be changed: it was made before, and its conversion did not add it",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name).field("spec.nodeClassRef.group"))
    .fix("See that the instance is gone. Then make group optional in the CustomResourceDefinition for as long as it takes to remove the finalizer, and restore it from the chart of your version.")
    .step(Risk::Inspect, "See what Karpenter logs", Some(format!("{} | grep {name}", commands::karpenter_log(case))))
    .step(
        Risk::Mutating,
        "Take group out of spec.nodeClassRef.required, and put it back afterwards",
        Some("kubectl edit customresourcedefinition nodeclaims.karpenter.sh".to_owned()),
    )
    .step(
        Risk::Destructive,
        "Remove the finalizer once the instance is gone; Karpenter does nothing more for it",
        Some(format!("kubectl patch nodeclaim {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'")),
    )
    .ask_aws(
        "Is the instance gone?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
            claim.instance_id().unwrap_or("INSTANCE")
        ),
    )
}

/// Karpenter is through with the Node, and another finalizer holds it.
pub(super) fn node_held_by_other(case: &Case, node: &Node) -> Option<Finding> {
    let blame = Blame::object("v1", "Node", node.name());
    let what = if case.claim.is_some() { format!("its Node {}", node.name()) } else { "it".to_owned() };
    held_by_other(case, &node.metadata, blame, TERMINATION_FINALIZER, &what)
}

/// The same of a NodeClaim.
pub(super) fn claim_held_by_other(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    let blame = Blame::object("karpenter.sh/v1", "NodeClaim", claim.name());
    held_by_other(case, &claim.metadata, blame, TERMINATION_FINALIZER, "it")
}

/// The same of a node class.
pub(super) fn class_held_by_other(case: &Case, class: &NodeClass) -> Option<Finding> {
    held_by_other(case, &class.metadata, Blame::class(class), CLASS_TERMINATION_FINALIZER, "it")
}

fn held_by_other(case: &Case, meta: &Meta, blame: Blame, own: &str, what: &str) -> Option<Finding> {
    meta.deletion_timestamp?;
    let held = &meta.finalizers;
    let other = held.first().filter(|_| !held.iter().any(|finalizer| *finalizer == *own))?;
    let (name, kind) = (&meta.name, blame.kind.clone());
    let plain = kind.to_ascii_lowercase();
    Some(
        Finding::new(
            Confidence::Certain,
            format!("{}: the finalizer {other} holds {what}.", head(case)),
            Evidence::new(
                format!("{kind}/{name}"),
                "metadata.finalizers",
                held.join(", "),
                format!("Karpenter has removed its own; the {kind} goes when this one is removed"),
            ),
        )
        .blaming(blame.field("metadata.finalizers"))
        .fix("See whose finalizer it is, and why it does not remove it: a controller that was uninstalled never will.")
        .step(Risk::Inspect, format!("See the {kind}"), Some(format!("kubectl get {plain} {name} -o yaml")))
        .step(
            Risk::Destructive,
            format!("Take the finalizer off where nobody is left to do it; what {other} guards is then skipped"),
            held.iter().position(|f| f == other).map(|at| take_off(&plain, name, at)),
        ),
    )
}

/// The command that takes one finalizer off, by its place among them.
pub(super) fn take_off(kind: &str, name: &str, at: usize) -> String {
    format!(
        "kubectl patch {kind} {name} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{at}\"}}]'"
    )
}
