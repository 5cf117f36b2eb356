//! What only AWS knows: evidence where it was asked and answered, else the question, with why there is no answer.

use crate::api::Evidence;
use crate::finding::Finding;
use crate::world::aws::Told;
use chrono::{DateTime, Utc};

/// ` (seen 2026-01-15 11:58:00Z)`, for what is observed: AWS is asked later than the cluster.
pub(super) fn seen(at: Option<DateTime<Utc>>) -> String {
    at.map_or_else(String::new, |at| format!(" (seen {})", at.format("%Y-%m-%d %H:%M:%SZ")))
}

/// Adds what AWS told to the evidence. Where it told nothing that settles the question, the question stays, and says why.
pub(super) fn or_ask<T>(
    finding: Finding,
    told: Told<'_, T>,
    question: &str,
    command: String,
    evidence: impl FnOnce(&T, Option<DateTime<Utc>>) -> Option<Evidence>,
) -> Finding {
    match told {
        Told::Nothing => finding.unknown(question, command),
        Told::Refused(refusal) => finding.unknown(format!("{question} ({refusal}.)"), command),
        Told::Absent(at) => finding
            .unknown(format!("{question} (AWS knows nothing of it, in the region and account that were asked{}.)", seen(at)), command),
        Told::Is(fact, at) => match evidence(fact, at) {
            Some(evidence) => finding.with(evidence),
            None => finding.unknown(question, command),
        },
    }
}
