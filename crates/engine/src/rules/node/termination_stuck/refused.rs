//! Karpenter tries to finish the deletion, but a request fails: its log shows which.

use super::head;
use crate::explain::{commands, launch_blame, launch_error, logged};
use crate::rules::prelude::*;

/// The line that Karpenter's log repeats about the end of this machine.
pub(super) fn refused(case: &Case) -> Option<Finding> {
    let fact = logged::holds(case)?;
    let text = &fact.last.text;
    let denied = launch_error::named(text).filter(|error| error.names_missing_right());
    // Source: apiextensions-apiserver v0.36.3 pkg/apiserver/validation/validation.go: the rules of the definition hold
    // for what only takes a finalizer off, too.
    let is_invalid = text.contains(" is invalid: ");
    // Sources: core v1.4.0, v1.14.1 pkg/utils/node/node.go `NodeClaimNotFoundError`; v1.14.1 goes on without it:
    // pkg/controllers/node/termination/controller.go `finalize`; kubernetes-sigs/karpenter#2266.
    let is_orphaned = case.claim.is_none()
        && case.cluster.missing(Input::NodeClaims).is_none()
        && text.contains("no nodeclaims found for provider");
    let (why, fix) = if denied.is_some() {
        (
            "AWS does not let Karpenter terminate the instance",
            "Allow Karpenter's role to call ec2:TerminateInstances on this instance. Karpenter then terminates it. The \
             role's policy may require a tag that this instance lacks. Karpenter's own policy requires the tags \
             kubernetes.io/cluster/NAME and karpenter.sh/nodepool, which each instance has from its launch. \
             Karpenter sets other tags, such as Name, only after the Node has joined.",
        )
    } else if is_invalid {
        (
            "the API server rejects what Karpenter writes, because the object no longer fits its definition",
            "Upgrade Karpenter and its CustomResourceDefinitions together: a later version writes what the definition \
             accepts. Once the instance is gone, you may remove the finalizer by hand.",
        )
    } else if is_orphaned {
        (
            "its NodeClaim is gone, and without it Karpenter does nothing more for the Node",
            "Check that the instance is gone, then remove the finalizer by hand. A later Karpenter terminates such \
             Nodes by itself.",
        )
    } else {
        ("Karpenter fails with it each time", "Fix what the line names. Karpenter then retries by itself.")
    };
    let is_denied = denied.is_some();
    let confidence = if is_denied || is_invalid || is_orphaned { Confidence::Certain } else { Confidence::Likely };
    let role = denied.and_then(|_| launch_blame::refused_role(text));
    let blame = match (role, case.claim, case.node) {
        (Some(role), ..) => Blame::object("", "IAMRole", role),
        (None, Some(claim), _) => {
            Blame::object("karpenter.sh/v1", "NodeClaim", claim.name()).field("metadata.finalizers")
        }
        (None, None, node) => Blame::object("v1", "Node", node?.name()).field("metadata.finalizers"),
    };
    let name = case.claim.map_or_else(|| case.node.map_or("", |node| node.name()), |claim| claim.name());
    let finding = Finding::new(
        confidence,
        format!("{}: {why}.{}", head(case), logged::quoted(fact)),
        logged::told(fact, "Karpenter logs this each time that it tries to finish the deletion"),
    )
    .blaming(blame)
    .fix(fix)
    .inspect("See what Karpenter logs", format!("{} | grep {name}", commands::karpenter_log(case)));
    Some(if is_denied { finding.step(Risk::LowRisk, "Allow the call to Karpenter's role", None) } else { finding })
}
