//! The differences between machines that fail at a stage and machines of the same class that passed it.
//!
//! A dimension that splits them is evidence that helps you find the cause. Three of them are a suspicion of their own
//! if machines do not join: the zone, the image, the instance type.

use crate::api::{Confidence, Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::cluster_state::class_members::{ClassMembers, Dimension, TEXT, Tally};
use crate::explain::instance_questions::ask_the_instance;
use crate::facts::recent_edits;
use crate::upstream::text_hash::HashKey;
use std::collections::BTreeMap;

/// The step that the compared machines did or did not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passed {
    /// They joined the cluster.
    Joined,
    /// They were initialized, and their Node is Ready.
    InService,
}

impl Passed {
    /// The step that a machine at this stage has not passed.
    pub const fn by_stage(stage: Stage) -> Option<Self> {
        match stage {
            Stage::Join | Stage::Register => Some(Self::Joined),
            Stage::Initialize | Stage::Ready => Some(Self::InService),
            Stage::Launch | Stage::Terminate => None,
        }
    }

    /// How many did, and how many did not.
    pub const fn counts(self, tally: &Tally) -> (u32, u32) {
        match self {
            Self::Joined => (tally.joined, tally.not_joined),
            Self::InService => (tally.in_service, tally.out_of_service),
        }
    }

    const fn verb(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::InService => "in service",
        }
    }
}

/// A value that this machine shares with machines that fail, and with none that passed.
#[derive(Debug)]
pub struct Split<'w> {
    pub dimension: &'static Dimension,
    pub value: &'w str,
    pub by: Passed,
    /// Machines with this value, none of which passed.
    pub failed: u32,
    /// The other value with the most machines that passed.
    pub elsewhere: &'w str,
    /// Machines with other values, all of which passed.
    pub passed: u32,
}

/// The dimensions whose value this machine shares with no machine that passed its stage.
pub fn splits<'w>(case: &Case<'w>) -> impl Iterator<Item = Split<'w>> {
    splits_by(case, |_| true)
}

/// Those of certain dimensions.
fn splits_by<'w>(case: &Case<'w>, of: impl Fn(&str) -> bool) -> impl Iterator<Item = Split<'w>> {
    let by = Passed::by_stage(case.stage());
    // Where none joined there is nothing to compare with.
    let class_members = case.class_members().filter(|class_members| by.is_some() && !class_members.joined().is_empty());
    let claim = case.claim;
    let split = move |(dimension, tallies): (&'static Dimension, &'w BTreeMap<String, Tally>)| {
        let (value, by) = (dimension.value(claim?)?, by?);
        let (passed, failed) = by.counts(tallies.get(value)?);
        // One machine is no pattern.
        if passed > 0 || failed < 2 {
            return None;
        }
        let own = failed;
        let others = tallies.iter().filter(|(other, _)| *other != value).map(|(other, t)| (other, by.counts(t)));
        let (passed, failed) = others.clone().fold((0, 0), |(passed, failed), (_, (p, f))| (passed + p, failed + f));
        let (elsewhere, _) = others.max_by_key(|(_, (passed, _))| *passed)?;
        (passed >= 2 && failed == 0).then_some(Split { dimension, value, by, failed: own, elsewhere, passed })
    };
    // Hashes of different versions say nothing of each other.
    let is_comparable = move |dimension: &Dimension| {
        let class = claim.map(|claim| &claim.spec.node_class_ref);
        dimension.what != TEXT || class.is_some_and(|class| case.cluster.has_one_hash_version(&class.kind, &class.name))
    };
    class_members
        .into_iter()
        .flat_map(ClassMembers::tallies)
        .filter(move |(dimension, _)| of(dimension.what) && is_comparable(dimension))
        .filter_map(split)
}

impl Split<'_> {
    fn evidence(&self, case: &Case) -> Evidence {
        let Self { value, elsewhere, failed, passed, .. } = self;
        let (what, verb) = (self.dimension.what, self.by.verb());
        let because = match self.by {
            Passed::Joined => format!("the {what} separates the machines that fail from those that joined"),
            Passed::InService => format!("the {what} separates the nodes that fail from those in service"),
        };
        let observed = format!("{what} {value}: none {verb}; other values, such as {elsewhere}: all {verb}");
        let figures = format!("0 of {failed} {verb}; elsewhere {passed} of {passed}");
        Evidence::new(case.subject(), self.dimension.field, observed, because).figures(figures)
    }
}

/// Every difference, as evidence for you.
pub fn evidence(case: &Case) -> Vec<Evidence> {
    splits(case).map(|split| split.evidence(case)).collect()
}

/// How strongly a difference in `what` suggests a cause, if it does.
///
/// A machine with another value that joined after this one was launched shows that nothing else has changed for all of
/// them meanwhile; else it takes more machines to tell. And what another dimension separates just as well is not told
/// apart.
pub fn suspicion<'w>(case: &Case<'w>, what: &str, also: &[&str]) -> Option<(Split<'w>, Confidence)> {
    const MANY: u32 = 3;
    let split = splits_by(case, |dimension| dimension == what).find(|split| split.by == Passed::Joined)?;
    // What was edited between the successes and the failures may be it just as well.
    let rivals = splits_by(case, |dimension| dimension != what && !also.contains(&dimension)).next().is_some()
        || !recent_edits::evidence(case).is_empty();
    // The second machine may only be booting.
    let (claim, class_members) = (case.claim?, case.class_members()?);
    let overdue = class_members.launched_in_vain().take_while(|(at, _)| case.now - *at >= case.wait.patience);
    let mut overdue = overdue.filter(|(_, name)| name != claim.name()).filter_map(|(_, name)| case.cluster.claim(name));
    if !case.is_overdue() || !overdue.any(|c| split.dimension.value(c) == Some(split.value)) {
        return None;
    }
    // The same text of the class: what an edit changed is not the fault of one value.
    case.same_spec_sibling_joined()?;
    let hash = case.class_hash();
    let since = claim.true_since("Launched")?;
    let mut later = class_members.joined_after(since).filter_map(|name| case.cluster.claim(name));
    let confidence = match (later.any(|c| HashKey::of_class(&c.metadata) == hash), rivals) {
        (true, false) => Confidence::Likely,
        (true, true) => Confidence::Possible,
        (false, false) if split.failed >= MANY && split.passed >= MANY => Confidence::Possible,
        (false, _) => return None,
    };
    Some((split, confidence))
}

/// The finding that a suspicion is.
pub fn finding(case: &Case, split: &Split, confidence: Confidence, summary: String) -> Finding {
    ask_the_instance(case, Finding::new(confidence, summary, case.wait.evidence.clone()).with(split.evidence(case)))
}
