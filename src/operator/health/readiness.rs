//! How far the first lists are: what /readyz says, when verdicts begin, and which inputs the rules may count on.

use engine::cluster_state::Availability;
use engine::objects::input::Input;
use engine::triage::change::{ReadFailure, SourceState, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Without these no verdict is given: half of them would make healthy machines look sick.
const FIRST: [Input; 3] = [Input::Nodes, Input::NodeClaims, Input::NodePools];
/// How long the others are waited for.
const OTHERS_WITHIN: Duration = Duration::from_secs(10);

/// The state of every source.
#[derive(Debug, Default)]
pub struct Readiness {
    sources: BTreeMap<(Watched, String), SourceState>,
    /// Sources that were read once. While one of them gives no answer, its last state stands.
    read_before: BTreeSet<(Watched, String)>,
    first_complete: Option<Instant>,
    judging: bool,
}

impl Readiness {
    pub fn new(sources: impl Iterator<Item = (Watched, String)>) -> Self {
        Self { sources: sources.map(|source| (source, SourceState::Pending)).collect(), ..Self::default() }
    }

    /// Takes in what a source says of itself.
    pub fn note(&mut self, what: Watched, name: String, state: SourceState, at: Instant) {
        if state == SourceState::Read {
            self.read_before.insert((what, name.clone()));
        }
        self.sources.insert((what, name), state);
        if self.first_complete.is_none()
            && FIRST.into_iter().all(|input| self.is_settled(input))
            && self.knows_what_was_said()
        {
            self.first_complete = Some(at);
        }
    }

    /// A source is not watched any more.
    pub fn forget(&mut self, what: Watched, name: &str) {
        let source = (what, name.to_owned());
        self.sources.remove(&source);
        self.read_before.remove(&source);
    }

    /// Karpenter need not be installed, but an API server that has just started may not know it yet: that is given time
    /// too. What is not permitted, or does not answer, is waited for.
    fn is_settled(&self, input: Input) -> bool {
        self.of(input)
            .all(|(_, state)| matches!(state, SourceState::Read | SourceState::Failed(ReadFailure::NotInstalled)))
    }

    /// Without the diagnoses of an earlier run, or of the replica that leads, everything would be written again.
    fn knows_what_was_said(&self) -> bool {
        self.sources.iter().all(|((what, _), state)| *what != Watched::Diagnoses || *state == SourceState::Read)
    }

    fn of(&self, input: Input) -> impl Iterator<Item = (&str, &SourceState)> {
        self.sources
            .iter()
            .filter(move |((what, _), _)| *what == Watched::Input(input))
            .map(|((_, name), state)| (name.as_str(), state))
    }

    /// When verdicts can begin: the first three inputs are complete, and the others are too or their time is up.
    pub fn can_judge_at(&self) -> Option<Instant> {
        let first = self.first_complete?;
        let pending = self.sources.values().any(|state| *state == SourceState::Pending)
            || FIRST.into_iter().flat_map(|input| self.of(input)).any(|(_, state)| *state != SourceState::Read);
        Some(if pending { first + OTHERS_WITHIN } else { first })
    }

    /// Records that verdicts begin now.
    pub fn judging(&mut self) {
        self.judging = true;
    }

    pub const fn is_ready(&self) -> bool {
        self.judging
    }

    /// Whether the rules can use an input. It counts as read if any of its sources is read, or was read before an
    /// outage.
    pub fn availability(&self, input: Input) -> Availability {
        let stands = |name: &str| self.read_before.contains(&(Watched::Input(input), name.to_owned()));
        if self.of(input).any(|(name, state)| match state {
            SourceState::Read => true,
            SourceState::Failed(ReadFailure::Unanswered(_)) => stands(name),
            SourceState::Pending | SourceState::Failed(_) => false,
        }) {
            return Availability::Read;
        }
        let failures = self.of(input).filter_map(|(name, state)| match state {
            SourceState::Failed(failure) => Some(format!("{name}: {failure}")),
            _ => None,
        });
        let why = failures.collect::<Vec<_>>().join("; ");
        Availability::Missing(if why.is_empty() { "the first list is not complete".to_owned() } else { why })
    }

    /// The lists that are not current, and why. Unlike the rules, a removal does not rely on what was read before.
    pub fn not_current(&self) -> BTreeMap<Watched, String> {
        let failed = self.sources.iter().filter_map(|((what, name), state)| match state {
            SourceState::Read => None,
            SourceState::Pending => Some((*what, format!("{name}: the first list is not complete"))),
            SourceState::Failed(failure) => Some((*what, format!("{name}: {failure}"))),
        });
        failed.collect()
    }

    /// The sources with their states, by name.
    pub fn states(&self) -> impl Iterator<Item = (&str, &SourceState)> {
        self.sources.iter().map(|((_, name), state)| (name.as_str(), state))
    }

    /// The body of /readyz, in the words of Kubernetes' own.
    pub fn report(&self) -> String {
        let mut out = String::new();
        for ((_, name), state) in &self.sources {
            let _ = match state {
                SourceState::Read => writeln!(out, "[+]{name} ok"),
                SourceState::Pending => writeln!(out, "[-]{name} the first list is not complete"),
                SourceState::Failed(failure) => writeln!(out, "[-]{name} {failure}"),
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
            readiness.note(input.into(), input.name().to_owned(), SourceState::Read, at);
        }
    }

    #[test]
    fn no_verdict_before_nodes_claims_and_pools_are_listed() {
        let now = Instant::now();
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())));
        readiness.note(Input::Nodes.into(), Input::Nodes.name().to_owned(), SourceState::Read, now);
        assert_eq!(readiness.can_judge_at(), None);
        all_read(&mut readiness, now);
        assert_eq!(readiness.can_judge_at(), Some(now));
    }

    #[test]
    fn other_inputs_are_waited_for_but_not_for_ever() {
        let now = Instant::now();
        let events = (Input::Events.into(), "events".to_owned());
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())).chain([events]));
        all_read(&mut readiness, now);
        assert_eq!(readiness.can_judge_at(), Some(now + OTHERS_WITHIN));
        readiness.note(
            Input::Events.into(),
            "events".to_owned(),
            SourceState::Failed(ReadFailure::NotPermitted("events".to_owned())),
            now,
        );
        assert_eq!(readiness.can_judge_at(), Some(now));
        assert!(
            matches!(readiness.availability(Input::Events), Availability::Missing(why) if why.contains("not permitted"))
        );
    }

    #[test]
    fn an_api_server_that_is_away_takes_nothing_back() {
        let now = Instant::now();
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())));
        all_read(&mut readiness, now);
        let nodes = Input::Nodes.name().to_owned();
        readiness.note(
            Input::Nodes.into(),
            nodes.clone(),
            SourceState::Failed(ReadFailure::Unanswered("connection refused".to_owned())),
            now,
        );
        assert_eq!(readiness.availability(Input::Nodes), Availability::Read);
        assert_eq!(
            readiness.states().find(|(name, _)| *name == nodes).map(|(_, state)| *state == SourceState::Read),
            Some(false)
        );
        readiness.note(
            Input::Nodes.into(),
            nodes,
            SourceState::Failed(ReadFailure::NotPermitted("nodes".to_owned())),
            now,
        );
        assert!(matches!(readiness.availability(Input::Nodes), Availability::Missing(_)));
    }

    #[test]
    fn what_is_not_permitted_or_fails_or_is_not_listed_is_not_current_though_rules_count_on_it() {
        let now = Instant::now();
        for input in FIRST {
            let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())));
            assert!(readiness.not_current().contains_key(&Watched::Input(input)), "not listed yet");
            all_read(&mut readiness, now);
            assert!(readiness.not_current().is_empty());
            let why = [
                ReadFailure::NotPermitted(String::new()),
                ReadFailure::Unanswered("500".to_owned()),
                ReadFailure::NotInstalled,
            ];
            for why in why {
                readiness.note(input.into(), input.name().to_owned(), SourceState::Failed(why.clone()), now);
                let stale = readiness.not_current();
                assert_eq!(stale.keys().copied().collect::<Vec<_>>(), [Watched::Input(input)]);
                assert!(stale[&Watched::Input(input)].contains(&why.to_string()), "{stale:?}");
            }
        }
    }

    #[test]
    fn claims_that_may_not_be_read_stop_verdicts_and_a_missing_karpenter_does_not() {
        let now = Instant::now();
        let mut readiness = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())));
        all_read(&mut readiness, now);
        let claims = Input::NodeClaims.name().to_owned();
        let mut refused = Readiness::new(FIRST.into_iter().map(|i| (i.into(), i.name().to_owned())));
        for input in [Input::Nodes, Input::NodePools] {
            refused.note(input.into(), input.name().to_owned(), SourceState::Read, now);
        }
        refused.note(
            Input::NodeClaims.into(),
            claims.clone(),
            SourceState::Failed(ReadFailure::NotPermitted(String::new())),
            now,
        );
        assert_eq!(refused.can_judge_at(), None);
        refused.note(Input::NodeClaims.into(), claims, SourceState::Failed(ReadFailure::NotInstalled), now);
        assert_eq!(refused.can_judge_at(), Some(now + OTHERS_WITHIN));
    }

    #[test]
    fn a_source_that_is_not_watched_any_more_is_not_reported() {
        let now = Instant::now();
        let mut readiness = Readiness::new([].into_iter());
        let name = "AKSNodeClass.karpenter.azure.com";
        readiness.note(Input::NodeClasses.into(), name.to_owned(), SourceState::Read, now);
        assert!(readiness.report().contains(name));
        readiness.forget(Input::NodeClasses.into(), name);
        assert!(!readiness.report().contains(name));
        assert_ne!(readiness.availability(Input::NodeClasses), Availability::Read);
    }

    #[test]
    fn no_verdict_before_what_was_said_is_known() {
        let now = Instant::now();
        let diagnoses = (Watched::Diagnoses, "nodediagnoses".to_owned());
        let mut readiness = Readiness::new([diagnoses.clone()].into_iter());
        all_read(&mut readiness, now);
        readiness.note(diagnoses.0, diagnoses.1.clone(), SourceState::Failed(ReadFailure::NotInstalled), now);
        assert_eq!(readiness.can_judge_at(), None);
        readiness.note(diagnoses.0, diagnoses.1, SourceState::Read, now);
        assert_eq!(readiness.can_judge_at(), Some(now));
    }
}
