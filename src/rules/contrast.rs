//! What separates the machines that fail from those of the same class that joined.
//!
//! One dimension that splits them is evidence for whoever looks for the cause. It is not a cause: it never decides a verdict.

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::finding::saw;

/// The dimensions whose value this machine shares with no machine that joined.
#[must_use]
pub fn evidence(case: &Case) -> Vec<Evidence> {
    let (Some(claim), Some(peers)) = (case.claim, case.peers()) else { return Vec::new() };
    if !matches!(case.stage(), Stage::Join | Stage::Register) {
        return Vec::new();
    }
    let split = |(dimension, tallies): (&'static crate::peers::Dimension, &std::collections::BTreeMap<String, crate::peers::Tally>)| {
        let own_value = dimension.value(claim)?;
        let own = tallies.get(own_value)?;
        let others = tallies.iter().filter(|(value, _)| *value != own_value);
        let (joined, failed) = others.clone().fold((0, 0), |(joined, failed), (_, t)| (joined + t.joined, failed + t.not_joined));
        let (elsewhere, _) = others.max_by_key(|(_, t)| t.joined)?;
        // One machine is no pattern.
        if own.joined > 0 || own.not_joined < 2 || joined < 2 || failed > 0 {
            return None;
        }
        let what = dimension.what;
        let observed =
            format!("{what} {own_value}: 0 of {} joined; other values, such as {elsewhere}: {joined} of {joined}", own.not_joined);
        let because = format!("the {what} separates the machines that fail from those that joined");
        Some(saw(case.subject(), dimension.field, observed, because))
    };
    peers.tallies().filter_map(split).collect()
}
