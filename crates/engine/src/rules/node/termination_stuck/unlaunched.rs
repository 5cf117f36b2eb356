//! A NodeClaim that never had an instance: Karpenter has nothing to drain or to terminate.

use super::finalizers::{claim_held_by_other, has_no_group, take_off};
use super::head;
use crate::case::timeout::never_launched;
use crate::explain::{commands, logged};
use crate::objects::{Condition, NodeClaim};
use crate::rules::prelude::*;
use crate::upstream::karpenter::TERMINATION_FINALIZER;

/// Karpenter asks the cloud to delete by status.providerID before it removes its finalizer, and treats "not found" as
/// done. The provider decides what an empty one means: karpenter-provider-gcp up to 0.3.2 returns an error.
/// Sources: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/controller.go `finalize`;
/// cloudpilot-ai/karpenter-provider-gcp v0.3.2 pkg/cloudprovider/cloudprovider.go `Delete`.
pub(super) fn unlaunched(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    if !never_launched(claim) || has_no_group(claim) {
        return None;
    }
    if let Some(other) = claim_held_by_other(case, claim) {
        return Some(other);
    }
    let name = claim.name();
    let told = logged::unexplained(case);
    let said = told.map(logged::quoted).unwrap_or_default();
    let launched = claim.condition("Launched").map_or_else(|| "absent".to_owned(), Condition::shown);
    let mut finding = Finding::new(
        if told.is_some() { Confidence::Certain } else { Confidence::Likely },
        format!(
            "{}: it was never launched (status.providerID is empty), so there is no instance to wait for.{said}",
            head(case)
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            "status.providerID",
            "empty",
            "no instance was created for it, and only Karpenter's finalizer holds it",
        ),
    )
    .with(Evidence::new(
        format!("NodeClaim/{name}"),
        r#"status.conditions[?(@.type=="Launched")]"#,
        launched,
        "its progress before it was deleted",
    ));
    if let Some(fact) = told {
        finding =
            finding.with(logged::told(fact, "Karpenter logs this each time that it tries to finish the deletion"));
    }
    Some(
        finding
            .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name).field("metadata.finalizers"))
            .fix(
                "Check that the cloud has no instance with its name, then remove the finalizer. If Karpenter's log \
                 calls the empty providerID an error, upgrade Karpenter or its provider. Then fix the reason why it \
                 was not launched.",
            )
            .inspect("See what Karpenter logs", format!("{} | grep {name}", commands::karpenter_log(case)))
            .destroy(
                "Remove the finalizer. Karpenter does nothing more for it",
                claim
                    .metadata
                    .finalizers
                    .iter()
                    .position(|own| *own == TERMINATION_FINALIZER)
                    .map(|at| take_off("nodeclaim", name, at)),
            ),
    )
}
