//! Compares verdicts, so that the passing of time alone causes no write.

use crate::api::pool_machines::PoolMachines;
use crate::api::{Condition, Evidence, Fix, NodeDiagnosis, NodeDiagnosisStatus, Text};
use crate::remediation::{PUT_BACK, REMOVING, remediated};

/// Whether `new` says the same as `old`. Labels of other tools do not count. Values that change by themselves do not
/// count either: the first time seen, the end, the time of a condition, the figures of the evidence, how many nodes a
/// fix replaces. The number of earlier failures counts only if it has doubled. Only the first suspect counts, because
/// each machine that joins or fails changes the others for its whole class.
pub fn same(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    old.spec == new.spec
        && has_labels(old, new)
        && !doubled(old, new)
        && match (&old.status, &new.status) {
            (Some(old), Some(new)) => same_verdict(old, new),
            (old, new) => old.is_none() && new.is_none(),
        }
}

/// Whether the labels are right. Other tools may have removed them from an object in the cluster. Diagnoses in memory
/// always have the right ones.
fn has_labels(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let stands = old.metadata.labels.as_ref();
    let was_read = old.metadata.uid.is_some();
    !was_read || new.labels().iter().all(|(key, value)| stands.and_then(|labels| labels.get(key)) == Some(value))
}

/// Names every field, so that the compiler asks about a new one.
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
        && (ruled_out, unknowns, alternatives) == (&old.ruled_out, &old.unknowns, &old.alternatives)
        && same_fix(old.fix.as_ref(), fix.as_ref())
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

fn same_fix(old: Option<&Fix>, new: Option<&Fix>) -> bool {
    let (Some(old), Some(new)) = (old, new) else { return old.is_none() && new.is_none() };
    let Fix { summary, disruption, steps, documentation } = new;
    let without_counts = |text: Option<&Text>| text.map(|text| text.replace(|c: char| c.is_ascii_digit(), ""));
    (summary, steps, documentation) == (&old.summary, &old.steps, &old.documentation)
        && without_counts(disruption.as_ref()) == without_counts(old.disruption.as_ref())
}

fn same_condition(old: &Condition, new: &Condition) -> bool {
    let Condition { type_, status, last_transition_time: _, reason, message, observed_generation } = new;
    (type_, status, reason, message, observed_generation)
        == (&old.type_, &old.status, &old.reason, &old.message, &old.observed_generation)
}

fn doubled(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    new.recurrences() > old.recurrences() && new.recurrences() >= old.recurrences().saturating_mul(2)
}

/// Copies from the earlier verdict about the same wait: its times, the number of earlier failures, and earlier
/// verdicts. A NodePool that now has its own verdict keeps only the counts of its machines.
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

/// Copies the result of remediation on the same machine. A refusal is dropped when the cause changes.
pub(super) fn keep_remediation(new: &mut NodeDiagnosis, old: &NodeDiagnosis) {
    let (Some(verdict), Some(before), Some(done)) = (&mut new.status, &old.status, remediated(old)) else { return };
    let stands = before.outcome.is_none() && before.cause == verdict.cause;
    if stands || done.status != "False" || [PUT_BACK, REMOVING].contains(&&*done.reason) {
        verdict.conditions.push(done.clone());
    }
}
