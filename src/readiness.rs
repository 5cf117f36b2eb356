//! How far the first lists are: what /readyz says, when verdicts begin, and which inputs the rules may count on.

use crate::input::Input;
use crate::watch::{Failure, State};
use crate::world::Availability;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Without these no verdict is given: half of them would make healthy machines look sick.
const FIRST: [Input; 3] = [Input::Nodes, Input::NodeClaims, Input::NodePools];
/// How long the others are waited for.
const OTHERS_WITHIN: Duration = Duration::from_secs(10);

/// The state of every source.
#[derive(Debug, Default)]
pub struct Readiness {
    sources: BTreeMap<(Input, String), State>,
    first_complete: Option<Instant>,
    judging: bool,
}

impl Readiness {
    #[must_use]
    pub fn new(sources: impl Iterator<Item = (Input, String)>) -> Self {
        Self { sources: sources.map(|source| (source, State::Pending)).collect(), ..Self::default() }
    }

    /// Takes in what a source says of itself.
    pub fn note(&mut self, input: Input, name: String, state: State, at: Instant) {
        self.sources.insert((input, name), state);
        if self.first_complete.is_none() && FIRST.into_iter().all(|input| self.is_settled(input)) {
            self.first_complete = Some(at);
        }
    }

    /// Karpenter need not be installed. What is not permitted, or does not answer, is waited for.
    fn is_settled(&self, input: Input) -> bool {
        self.of(input).all(|(_, state)| matches!(state, State::Read | State::Failed(Failure::NotInstalled)))
    }

    fn of(&self, input: Input) -> impl Iterator<Item = (&str, &State)> {
        self.sources.iter().filter(move |((i, _), _)| *i == input).map(|((_, name), state)| (name.as_str(), state))
    }

    /// When verdicts can begin: the first three are complete, and the others too or their time is up.
    #[must_use]
    pub fn can_judge_at(&self) -> Option<Instant> {
        let first = self.first_complete?;
        let pending = self.sources.values().any(|state| *state == State::Pending);
        Some(if pending { first + OTHERS_WITHIN } else { first })
    }

    /// Verdicts are given from now on.
    pub fn judging(&mut self) {
        self.judging = true;
    }

    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.judging
    }

    /// What the rules are told about an input: it counts as read where any of its sources is.
    #[must_use]
    pub fn availability(&self, input: Input) -> Availability {
        if self.of(input).any(|(_, state)| *state == State::Read) {
            return Availability::Read;
        }
        let failures = self.of(input).filter_map(|(name, state)| match state {
            State::Failed(failure) => Some(format!("{name}: {failure}")),
            _ => None,
        });
        let why = failures.collect::<Vec<_>>().join("; ");
        Availability::Missing(if why.is_empty() { "the first list is not complete".to_owned() } else { why })
    }

    /// The sources, by name, and whether each is read.
    pub fn up(&self) -> impl Iterator<Item = (&str, bool)> {
        self.sources.iter().map(|((_, name), state)| (name.as_str(), *state == State::Read))
    }

    /// The body of /readyz, in the words of Kubernetes' own.
    #[must_use]
    pub fn report(&self) -> String {
        let mut out = String::new();
        for ((_, name), state) in &self.sources {
            let _ = match state {
                State::Read => writeln!(out, "[+]{name} ok"),
                State::Pending => writeln!(out, "[-]{name} the first list is not complete"),
                State::Failed(failure) => writeln!(out, "[-]{name} {failure}"),
            };
        }
        out.push_str(if self.judging { "readyz check passed\n" } else { "readyz check failed: no verdicts yet\n" });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_read(readiness: &mut Readiness, at: Instant) {
        for input in FIRST {
            readiness.note(input, input.name().to_owned(), State::Read, at);
        }
    }

    #[test]
    fn no_verdict_before_nodes_claims_and_pools_are_listed() {
        let now = Instant::now();
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i, i.name().to_owned())));
        readiness.note(Input::Nodes, Input::Nodes.name().to_owned(), State::Read, now);
        assert_eq!(readiness.can_judge_at(), None);
        all_read(&mut readiness, now);
        assert_eq!(readiness.can_judge_at(), Some(now));
    }

    #[test]
    fn other_inputs_are_waited_for_but_not_for_ever() {
        let now = Instant::now();
        let events = (Input::Events, "events".to_owned());
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i, i.name().to_owned())).chain([events]));
        all_read(&mut readiness, now);
        assert_eq!(readiness.can_judge_at(), Some(now + OTHERS_WITHIN));
        readiness.note(Input::Events, "events".to_owned(), State::Failed(Failure::NotPermitted("events".to_owned())), now);
        assert_eq!(readiness.can_judge_at(), Some(now));
        assert!(matches!(readiness.availability(Input::Events), Availability::Missing(why) if why.contains("not permitted")));
    }

    #[test]
    fn claims_that_may_not_be_read_stop_verdicts_and_a_missing_karpenter_does_not() {
        let now = Instant::now();
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i, i.name().to_owned())));
        all_read(&mut readiness, now);
        let claims = Input::NodeClaims.name().to_owned();
        let mut refused = Readiness::new(FIRST.into_iter().map(|i| (i, i.name().to_owned())));
        for input in [Input::Nodes, Input::NodePools] {
            refused.note(input, input.name().to_owned(), State::Read, now);
        }
        refused.note(Input::NodeClaims, claims.clone(), State::Failed(Failure::NotPermitted(String::new())), now);
        assert_eq!(refused.can_judge_at(), None);
        refused.note(Input::NodeClaims, claims, State::Failed(Failure::NotInstalled), now);
        assert_eq!(refused.can_judge_at(), Some(now));
    }
}
