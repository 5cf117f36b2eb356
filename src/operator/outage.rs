//! If the API server is unreachable, every watch fails at once. nodewhy reports that once at its start and once at its
//! end, not for each watch.

use engine::triage::change::{ReadFailure, SourceState};
use std::collections::{BTreeMap, BTreeSet};

/// Inputs whose requests fail, by the reported error.
#[derive(Debug, Default)]
pub(super) struct Outages(BTreeMap<String, BTreeSet<String>>);

/// The effect of a new state of an input on the outages.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outage {
    Begins(String),
    /// It is already reported, or other inputs still fail.
    GoesOn,
    /// The last failed input is read again.
    Ends(String),
    /// It does not concern an outage.
    None,
}

impl Outages {
    pub(super) fn note(&mut self, input: &str, state: &SourceState) -> Outage {
        let reason = match state {
            SourceState::Failed(ReadFailure::Unanswered(why)) => Some(why),
            _ => None,
        };
        let before = self.0.iter().find(|(_, inputs)| inputs.contains(input)).map(|(why, _)| why.clone());
        if before.as_ref() == reason {
            return if reason.is_some() { Outage::GoesOn } else { Outage::None };
        }
        let mut ended = None;
        if let Some(why) = before {
            let inputs = self.0.entry(why.clone()).or_default();
            inputs.remove(input);
            if inputs.is_empty() {
                self.0.remove(&why);
                ended = Some(why);
            }
        }
        match (reason, ended) {
            (Some(why), _) => {
                let is_new = !self.0.contains_key(why);
                self.0.entry(why.clone()).or_default().insert(input.to_owned());
                if is_new { Outage::Begins(why.clone()) } else { Outage::GoesOn }
            }
            // Other inputs may still fail with another error.
            (None, Some(why)) if self.0.is_empty() => Outage::Ends(why),
            (None, _) => Outage::GoesOn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_when_it_begins_and_once_when_it_is_over() {
        let away = || SourceState::Failed(ReadFailure::Unanswered("connection refused".to_owned()));
        let refused = SourceState::Failed(ReadFailure::NotPermitted("no".to_owned()));
        let mut outages = Outages::default();
        let mut note = |input: &str, state: &SourceState| outages.note(input, state);
        assert_eq!(note("nodes", &SourceState::Read), Outage::None);
        assert_eq!(note("nodes", &away()), Outage::Begins("connection refused".to_owned()));
        assert_eq!(note("nodeclaims", &away()), Outage::GoesOn);
        assert_eq!(note("nodepools", &refused), Outage::None);
        assert_eq!(note("nodes", &SourceState::Read), Outage::GoesOn);
        assert_eq!(note("nodeclaims", &SourceState::Read), Outage::Ends("connection refused".to_owned()));
        assert_eq!(note("nodeclaims", &SourceState::Read), Outage::None);
    }

    #[test]
    fn what_fails_for_another_reason_is_another_matter() {
        let failed = |why: &str| SourceState::Failed(ReadFailure::Unanswered(why.to_owned()));
        let mut outages = Outages::default();
        assert_eq!(outages.note("nodes", &failed("500")), Outage::Begins("500".to_owned()));
        assert_eq!(
            outages.note("events", &failed("connection refused")),
            Outage::Begins("connection refused".to_owned())
        );
        // While it is down, the first fails like the others: told already.
        assert_eq!(outages.note("nodes", &failed("connection refused")), Outage::GoesOn);
        assert_eq!(outages.note("nodes", &SourceState::Read), Outage::GoesOn);
        assert_eq!(outages.note("events", &SourceState::Read), Outage::Ends("connection refused".to_owned()));
    }
}
