//! A machine that Karpenter reboots in place to repair it, since core 1.15 and behind two feature gates.
//!
//! Karpenter drains the Node, asks AWS for the reboot, and waits until the Node is Ready with another boot id.
//! Meanwhile the machine is out of service by design. It counts as stuck only after the time at which Karpenter itself
//! gives up and replaces it.
//! Source: core pkg/controllers/nodeclaim/reboot/controller.go (v1.15.0).

use super::deletion_reason::go_duration;
use super::thresholds::Thresholds;
use super::wait::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::objects::{Condition, NodeClaim};
use crate::upstream::karpenter;
use chrono::{DateTime, Utc};

/// `Rebooting=True`: Karpenter has decided to reboot the machine, and the reboot has not ended.
fn rebooting(claim: &NodeClaim) -> Option<&Condition> {
    claim.condition("Rebooting").filter(|rebooting| rebooting.is_true())
}

/// When the last reboot ended. Until then Karpenter's checks of the Node stood still.
/// Source: core pkg/controllers/nodeclaim/lifecycle/initialization.go `Reconcile` (v1.15.0).
pub(super) fn ended_at(claim: &NodeClaim) -> Option<DateTime<Utc>> {
    claim.condition("Rebooting").filter(|rebooting| rebooting.is_false())?.last_transition_time
}

/// The wait of a machine that reboots.
pub(super) fn wait(claim: &NodeClaim, t: &Thresholds) -> Option<Wait> {
    let rebooting = rebooting(claim)?;
    let requested = rebooting.last_transition_time?;
    if rebooting.reason == "RebootIssued" {
        return recovery(claim, requested, t);
    }
    let because = "Karpenter drains the node before it reboots it, and AWS has not accepted the reboot yet";
    let field = r#"status.conditions[?(@.type=="Rebooting")]"#;
    let evidence = Evidence::new(format!("NodeClaim/{}", claim.name()), field, rebooting.shown(), because);
    let stage = if claim.is_true("Initialized") { Stage::Ready } else { Stage::Initialize };
    let wait = Wait::new(stage, requested, t.terminate, t, evidence);
    let wait = Wait { proven: t.terminate, symptom: Symptom::RebootPending, ..wait };
    let bound = claim.metadata.annotation(karpenter::REBOOT_GRACE_PERIOD).and_then(go_duration);
    let Some(patience) = bound.and_then(|bound| bound.checked_add(&(karpenter::REBOOT_ISSUANCE + t.proven))) else {
        // Without a bound the drain takes as long as its pods and their budgets want.
        return Some(wait.only_with_proof());
    };
    Some(Wait { patience, proven: patience, ..wait })
}

/// From the reboot until the Node is Ready again.
fn recovery(claim: &NodeClaim, requested: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    // AWS's answer turns Initialized into Unknown. Rebooting keeps the time of the request.
    let initialized = claim.condition("Initialized").filter(|initialized| !initialized.is_true());
    let since = initialized.and_then(|initialized| initialized.last_transition_time).max(Some(requested))?;
    let shown = initialized.map_or_else(|| "absent".to_owned(), Condition::shown);
    let because = "Karpenter rebooted the node, and it has not been Ready with another boot id since";
    let field = r#"status.conditions[?(@.type=="Initialized")]"#;
    let evidence = Evidence::new(format!("NodeClaim/{}", claim.name()), field, shown, because);
    // Karpenter looks every 15 seconds, and then replaces the machine.
    let patience = (karpenter::REBOOT_RECOVERY + t.proven).max(t.initialize);
    let wait = Wait::new(Stage::Initialize, since, patience, t, evidence);
    Some(Wait { proven: patience, ..wait })
}
