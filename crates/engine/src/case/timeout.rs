//! Karpenter's timeouts of a launch and of a registration, and how a machine that it deletes ends.

use crate::api::Outcome;
use crate::objects::NodeClaim;
use crate::upstream::karpenter;
use chrono::{DateTime, Utc};

/// When Karpenter will delete the machine, or would have.
pub fn terminates_at(claim: &NodeClaim, karpenter: Option<&karpenter::Karpenter>) -> Option<DateTime<Utc>> {
    let created = claim.metadata.creation_timestamp?;
    let since = |type_: &str| claim.condition(type_).and_then(|c| c.last_transition_time).unwrap_or(created);
    // The timeout came with Machines: core pkg/controllers/machine/lifecycle/liveness.go (v0.28.0).
    if claim.is_true("Registered") || claim.is_node() {
        None
    } else if !claim.is_true("Launched") && karpenter.is_some_and(karpenter::Karpenter::has_launch_timeout) {
        since("Launched").checked_add_signed(karpenter::LAUNCH_TIMEOUT)
    } else {
        // core liveness.go counts from the last transition of Registered, which starts as the claim's creation.
        since("Registered").checked_add_signed(karpenter::REGISTRATION_TIMEOUT)
    }
}

/// Whether the deletion at `deleted` is Karpenter's liveness timeout: it leaves no event, only arithmetic.
pub fn timed_out(claim: &NodeClaim, deleted: DateTime<Utc>) -> bool {
    let Some(created) = claim.metadata.creation_timestamp else { return false };
    if claim.is_true("Registered") || claim.is_node() {
        return false;
    }
    let since = |type_: &str| claim.condition(type_).and_then(|c| c.last_transition_time).unwrap_or(created);
    let (began, timeout) = if claim.is_true("Launched") {
        (since("Registered"), karpenter::REGISTRATION_TIMEOUT)
    } else {
        (since("Launched"), karpenter::LAUNCH_TIMEOUT)
    };
    deleted - began >= timeout
}

/// How a claim that is deleted at this time ends.
pub fn outcome(claim: &NodeClaim, deleted: DateTime<Utc>) -> Outcome {
    if timed_out(claim, deleted) { Outcome::Terminated } else { Outcome::Deleted }
}

/// Deleted before any instance existed: Karpenter gives up at once on lack of capacity and on a node class that is not
/// ready.
pub fn never_launched(claim: &NodeClaim) -> bool {
    !claim.is_true("Launched") && claim.status.provider_id.is_empty()
}
