//! Finalizers that stay: another controller's, or Karpenter's on a NodeClaim that the API server does not update.

use super::head;
use crate::explain::commands;
use crate::objects::{Meta, Node, NodeClaim, NodeClass};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{CLASS_TERMINATION_FINALIZER, TERMINATION_FINALIZER};

/// A NodeClaim from before v1 whose conversion left out a field that v1 requires. The API server rejects every write to
/// it, even the removal of the finalizer, and later versions of Karpenter do not treat it as their own.
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
            "{}: its spec.nodeClassRef has no group, which karpenter.sh/v1 requires. So either the API server rejects \
             every write, including the removal of Karpenter's finalizer, or Karpenter ignores this NodeClaim.",
            head(case)
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            "spec.nodeClassRef",
            format!("{{kind: {}, name: {}}}", reference.kind, reference.name),
            "group is required since v1, and the spec cannot be changed: the NodeClaim is older, and its conversion \
             did not add the group",
        ),
    )
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name).field("spec.nodeClassRef.group"))
    .fix(
        "Check that the instance is gone. Then make group optional in the CustomResourceDefinition while you remove \
         the finalizer, and restore it from the chart of your version. Running nodes are not disrupted.",
    )
    .inspect("See what Karpenter logs", format!("{} | grep {name}", commands::karpenter_log(case)))
    .change(
        "Remove group from spec.nodeClassRef.required",
        "kubectl edit customresourcedefinition nodeclaims.karpenter.sh".to_owned(),
    )
    .destroy(
        "Remove the finalizer once the instance is gone. Karpenter does nothing more for it",
        format!("kubectl patch nodeclaim {name} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'"),
    )
    .change(
        "Add group to spec.nodeClassRef.required again",
        "kubectl edit customresourcedefinition nodeclaims.karpenter.sh".to_owned(),
    )
    .ask_aws(
        "Is the instance gone?",
        format!(
            "aws ec2 describe-instances --instance-ids {} --query 'Reservations[].Instances[].State'",
            claim.instance_id().unwrap_or("INSTANCE")
        ),
    )
}

/// Karpenter has finished with the Node, but another finalizer holds it.
pub(super) fn node_held_by_other(case: &Case, node: &Node) -> Option<Finding> {
    let blame = Blame::object("v1", "Node", node.name());
    let what = if case.claim.is_some() { format!("its Node {}", node.name()) } else { "it".to_owned() };
    held_by_other(case, &node.metadata, blame, TERMINATION_FINALIZER, &what)
}

/// A NodeClaim that another finalizer holds.
pub(super) fn claim_held_by_other(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    let blame = Blame::object("karpenter.sh/v1", "NodeClaim", claim.name());
    held_by_other(case, &claim.metadata, blame, TERMINATION_FINALIZER, "it")
}

/// A node class that another finalizer holds.
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
                format!("Karpenter has removed its own; Kubernetes deletes the {kind} when this one is removed too"),
            ),
        )
        .blaming(blame.field("metadata.finalizers"))
        .fix(
            "Find out which controller owns the finalizer, and why it does not remove it. A controller that was \
             uninstalled never will.",
        )
        .inspect(format!("See the {kind}"), format!("kubectl get {plain} {name} -o yaml"))
        .destroy(
            format!("Remove the finalizer if its controller is gone. The cleanup that {other} guards is then skipped"),
            held.iter().position(|f| f == other).map(|at| take_off(&plain, name, at)),
        ),
    )
}

/// The command that removes one finalizer by its index.
pub(super) fn take_off(kind: &str, name: &str, at: usize) -> String {
    format!(
        "kubectl patch {kind} {name} --type=json -p '[{{\"op\":\"remove\",\"path\":\"/metadata/finalizers/{at}\"}}]'"
    )
}
