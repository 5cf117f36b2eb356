//! When two verdicts say the same, so that nothing is written because time went by.

use crate::api::pool_machines::PoolMachines;
use crate::api::{Condition, Evidence, NodeDiagnosis, NodeDiagnosisStatus};
use crate::remediation::{PUT_BACK, REMOVING, remediated};

/// Whether `new` says what `old` says. Labels that others put on the object do not count, nor does what moves by
/// itself: when it was first seen, when it ended, when a condition changed, the figures of the evidence; and how many
/// failed before only where it has doubled. Of suspects only the first counts: with each machine that joins or fails the
/// rest changes for all of its class.
pub fn same(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    old.spec == new.spec
        && has_labels(old, new)
        && !doubled(old, new)
        && match (&old.status, &new.status) {
            (Some(old), Some(new)) => same_verdict(old, new),
            (old, new) => old.is_none() && new.is_none(),
        }
}

/// What was read from the API server may have lost its labels there; what was made here has them by what it says.
fn has_labels(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let stands = old.metadata.labels.as_ref();
    let was_read = old.metadata.uid.is_some();
    !was_read || new.labels().iter().all(|(key, value)| stands.and_then(|labels| labels.get(key)) == Some(value))
}

/// Every field is named, so that a new one has to be thought of.
fn same_verdict(old: &NodeDiagnosisStatus, new: &NodeDiagnosisStatus) -> bool {
    let NodeDiagnosisStatus {
        stage,
        cause,
        confidence,
        summary,
        blame,
        evidence,
        chain,
        ruled_out,
        unknowns,
        alternatives,
        suspects,
        fix,
        first_observed_at: _,
        terminates_at,
        ended_at: _,
        outcome,
        machines,
        earlier,
        recurrences: _,
        conditions,
    } = new;
    (stage, cause, confidence, summary, blame) == (&old.stage, &old.cause, &old.confidence, &old.summary, &old.blame)
        && (chain, terminates_at, outcome) == (&old.chain, &old.terminates_at, &old.outcome)
        && (machines, earlier) == (&old.machines, &old.earlier)
        && (ruled_out, unknowns, alternatives, fix) == (&old.ruled_out, &old.unknowns, &old.alternatives, &old.fix)
        && suspects.first().map(|s| &s.grounds.cause) == old.suspects.first().map(|s| &s.grounds.cause)
        && all_same(&old.evidence, evidence, same_evidence)
        && all_same(&old.conditions, conditions, same_condition)
}

fn all_same<T>(old: &[T], new: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| same(old, new))
}

fn same_evidence(old: &Evidence, new: &Evidence) -> bool {
    let Evidence { source, object, field, observed, because, figures: _ } = new;
    (source, object, field, observed, because) == (&old.source, &old.object, &old.field, &old.observed, &old.because)
}

fn same_condition(old: &Condition, new: &Condition) -> bool {
    let Condition { type_, status, last_transition_time: _, reason, message, observed_generation } = new;
    (type_, status, reason, message, observed_generation)
        == (&old.type_, &old.status, &old.reason, &old.message, &old.observed_generation)
}

fn doubled(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    new.recurrences() > old.recurrences() && new.recurrences() >= old.recurrences().saturating_mul(2)
}

/// Takes over what a verdict about the same wait already has: its times, how many failed before, and what was said
/// before. What was said for its machines, a NodePool that has a verdict of its own now only counts.
pub(super) fn keep(new: &mut NodeDiagnosis, old: &NodeDiagnosis) {
    let spoke_for_machines = old.speaks_for_machines();
    let (Some(new), Some(old)) = (&mut new.status, &old.status) else { return };
    new.earlier.clone_from(&old.earlier);
    new.machines = old.machines.clone().map(|machines| Box::new(PoolMachines { example: None, ..*machines }));
    if new.stage == old.stage && !spoke_for_machines {
        new.first_observed_at = new.first_observed_at.min(old.first_observed_at);
    }
    if new.cause == old.cause {
        new.recurrences = new.recurrences.max(old.recurrences);
    }
    for condition in &mut new.conditions {
        if let Some(before) = old.conditions.iter().find(|c| c.type_ == condition.type_ && c.status == condition.status)
        {
            condition.last_transition_time = before.last_transition_time;
        }
    }
}

/// Takes over what was done to the same machine. A refusal goes with the cause that it was about.
pub(super) fn keep_remediation(new: &mut NodeDiagnosis, old: &NodeDiagnosis) {
    let (Some(verdict), Some(before), Some(done)) = (&mut new.status, &old.status, remediated(old)) else { return };
    let stands = before.outcome.is_none() && before.cause == verdict.cause;
    if stands || done.status != "False" || [PUT_BACK, REMOVING].contains(&&*done.reason) {
        verdict.conditions.push(done.clone());
    }
}
