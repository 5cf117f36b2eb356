//! What separates the machines that fail from those of the same class that joined.
//!
//! One dimension that splits them is evidence for whoever looks for the cause. Three of them are a suspicion of their
//! own: the zone, the image, the instance type.

use crate::api::{Confidence, Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::cluster_state::class_members::{ClassMembers, Dimension, Tally};
use crate::rules::shared::change;
use crate::rules::shared::instance_questions::ask_the_instance;
use crate::upstream::karpenter::CLASS_HASH;
use std::collections::BTreeMap;

/// A value that this machine shares with machines that fail, and with none that joined.
#[derive(Debug)]
pub struct Split<'w> {
    pub dimension: &'static Dimension,
    pub value: &'w str,
    /// Machines with this value, none of which joined.
    pub failed: u32,
    /// The other value with the most machines that joined.
    pub elsewhere: &'w str,
    /// Machines with other values, all of which joined.
    pub joined: u32,
}

/// The dimensions whose value this machine shares with no machine that joined.
pub fn splits<'w>(case: &Case<'w>) -> impl Iterator<Item = Split<'w>> {
    splits_by(case, |_| true)
}

/// Those of certain dimensions.
fn splits_by<'w>(case: &Case<'w>, of: impl Fn(&str) -> bool) -> impl Iterator<Item = Split<'w>> {
    // Where none joined there is nothing to compare with.
    let compares = matches!(case.stage(), Stage::Join | Stage::Register);
    let class_members = case.class_members().filter(|class_members| compares && !class_members.joined().is_empty());
    let claim = case.claim;
    let split = move |(dimension, tallies): (&'static Dimension, &'w BTreeMap<String, Tally>)| {
        let value = dimension.value(claim?)?;
        let own = tallies.get(value)?;
        // One machine is no pattern.
        if own.joined > 0 || own.not_joined < 2 {
            return None;
        }
        let others = tallies.iter().filter(|(other, _)| *other != value);
        let (joined, failed) =
            others.clone().fold((0, 0), |(joined, failed), (_, t)| (joined + t.joined, failed + t.not_joined));
        let (elsewhere, _) = others.max_by_key(|(_, t)| t.joined)?;
        (joined >= 2 && failed == 0).then_some(Split { dimension, value, failed: own.not_joined, elsewhere, joined })
    };
    class_members
        .into_iter()
        .flat_map(ClassMembers::tallies)
        .filter(move |(dimension, _)| of(dimension.what))
        .filter_map(split)
}

impl Split<'_> {
    fn evidence(&self, case: &Case) -> Evidence {
        let what = self.dimension.what;
        let because = format!("the {what} separates the machines that fail from those that joined");
        let observed =
            format!("{what} {}: none joined; other values, such as {}: all joined", self.value, self.elsewhere);
        Evidence::new(case.subject(), self.dimension.field, observed, because).figures(format!(
            "0 of {} joined; elsewhere {joined} of {joined}",
            self.failed,
            joined = self.joined
        ))
    }
}

/// Every split, for whoever looks.
pub fn evidence(case: &Case) -> Vec<Evidence> {
    splits(case).map(|split| split.evidence(case)).collect()
}

/// How far a split by `what` suggests a cause, where it does.
///
/// A machine with another value that joined after this one was launched shows that nothing else has changed for all of
/// them meanwhile; else it takes more machines to tell. And what another dimension separates just as well is not told
/// apart.
pub fn suspicion<'w>(case: &Case<'w>, what: &str, also: &[&str]) -> Option<(Split<'w>, Confidence)> {
    const MANY: u32 = 3;
    let split = splits_by(case, |dimension| dimension == what).next()?;
    // What was edited between the successes and the failures may be it just as well.
    let rivals = splits_by(case, |dimension| dimension != what && !also.contains(&dimension)).next().is_some()
        || !change::evidence(case).is_empty();
    // The second machine may only be booting.
    let (claim, class_members) = (case.claim?, case.class_members()?);
    let overdue = class_members.launched_in_vain().take_while(|(at, _)| case.now - *at >= case.wait.patience);
    let mut overdue = overdue.filter(|(_, name)| name != claim.name()).filter_map(|(_, name)| case.cluster.claim(name));
    if !case.is_overdue() || !overdue.any(|c| split.dimension.value(c) == Some(split.value)) {
        return None;
    }
    // The same text of the class: what an edit changed is not the fault of one value.
    case.same_spec_sibling_joined()?;
    let hash = claim.metadata.annotation(CLASS_HASH);
    let since = claim.true_since("Launched")?;
    let mut later = class_members.joined_after(since).filter_map(|name| case.cluster.claim(name));
    let confidence = match (later.any(|c| c.metadata.annotation(CLASS_HASH) == hash), rivals) {
        (true, false) => Confidence::Likely,
        (true, true) => Confidence::Possible,
        (false, false) if split.failed >= MANY && split.joined >= MANY => Confidence::Possible,
        (false, _) => return None,
    };
    Some((split, confidence))
}

/// The finding that a suspicion is.
pub fn finding(case: &Case, split: &Split, confidence: Confidence, summary: String) -> Finding {
    ask_the_instance(case, Finding::new(confidence, summary, case.wait.evidence.clone()).with(split.evidence(case)))
}
