//! When two verdicts say the same, so that nothing is written because time went by.
//!
//! Two verdicts are the same when they name the same machine, cause, stage, confidence, blame, outcome and evidence, and their
//! sentences differ in nothing but numbers that stand alone: `7m 30s`, `12 times`, `2026-11-21T10:00:00Z`. When it was first
//! seen, when it ended and when a condition changed do not count, and how many failed before only where it has doubled.

use super::history::recurrences;
use crate::api::NodeDiagnosis;
use crate::remediation::{PUT_BACK, REMOVING, remediated};
use serde_json::Value;

/// Fields of the status whose words are sentences.
const SENTENCES: [&str; 6] = ["summary", "observed", "because", "question", "text", "message"];
/// Times that follow from when somebody looked.
const TIMES: [&str; 3] = ["firstObservedAt", "endedAt", "lastTransitionTime"];
const COUNT: &str = "recurrences";

/// Whether `new` says what `old` says. Labels that others put on the object do not count.
pub(super) fn same(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let labels = |d: &NodeDiagnosis| d.metadata.labels.clone().unwrap_or_default();
    let old_labels = labels(old);
    old.spec == new.spec
        && labels(new).iter().all(|(key, value)| old_labels.get(key) == Some(value))
        && !doubled(old, new)
        && essence(old) == essence(new)
}

fn doubled(old: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    recurrences(new) > recurrences(old) && recurrences(new) >= recurrences(old).saturating_mul(2)
}

/// Takes over what a verdict about the same wait already has: its times, and how many failed before.
pub(super) fn keep(new: &mut NodeDiagnosis, old: &NodeDiagnosis) {
    let (Some(new), Some(old)) = (&mut new.status, &old.status) else { return };
    if new.stage == old.stage {
        new.first_observed_at = new.first_observed_at.min(old.first_observed_at);
    }
    if new.cause == old.cause {
        new.recurrences = new.recurrences.max(old.recurrences);
    }
    for condition in &mut new.conditions {
        if let Some(before) = old.conditions.iter().find(|c| c.type_ == condition.type_ && c.status == condition.status) {
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

fn essence(diagnosis: &NodeDiagnosis) -> Option<Value> {
    let mut status = serde_json::to_value(diagnosis.status.as_ref()?).ok()?;
    reduce(&mut status);
    Some(status)
}

fn reduce(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !TIMES.contains(&name.as_str()) && name != COUNT);
            for (name, field) in fields {
                match field {
                    Value::String(text) if SENTENCES.contains(&name.as_str()) => *text = without_numbers(text),
                    _ => reduce(field),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(reduce),
        _ => {}
    }
}

/// Puts `#` for every run of words that begin with a digit.
fn without_numbers(text: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in text.split(' ') {
        let number = word.trim_start_matches(['(', '"', '\'']).starts_with(|c: char| c.is_ascii_digit());
        match (number, words.last()) {
            (true, Some(&"#")) => {}
            (true, _) => words.push("#"),
            (false, _) => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_goes_by_is_no_news() {
        let said = |waited: &str| without_numbers(&format!("i-0abc of NodeClaim/general-7xk2p was launched {waited} ago"));
        assert_eq!(said("59s"), said("1m 3s"));
        assert_eq!(said("59s"), said("2h"));
        assert_eq!(
            without_numbers("seen (12 times) since 2026-11-21T10:00:00Z"),
            without_numbers("seen (3 times) since 2026-11-20T10:00:00Z")
        );
    }

    #[test]
    fn other_names_are_news() {
        assert_ne!(without_numbers("NodeClaim/general-7xk2p joined"), without_numbers("NodeClaim/general-8abcd joined"));
        assert_ne!(without_numbers("role KarpenterNodeRole-a"), without_numbers("role KarpenterNodeRole-b"));
    }
}
