//! What of an answer is right.

use crate::answers::Answer;
use crate::case::{Case, Observable, Truth};
use std::collections::BTreeSet;

/// What the answers to one case are worth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    #[default]
    Wrong,
    /// The cause is among the first three suspects.
    Suspected,
    Right,
}

/// How the answers to one case compare with its truth.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Score {
    /// What was called sick and is not.
    pub false_alarms: Vec<String>,
    /// What is sick and was not named.
    pub missed: Vec<String>,
    /// Wrong causes that were named, and others' objects.
    pub wrongly_blamed: Vec<String>,
    /// True causes that were said to be excluded.
    pub truth_ruled_out: Vec<String>,
    /// Who was called certain, where nobody can tell.
    pub overclaimed: Vec<String>,
    /// Every answer has the words of the cause.
    pub cause: bool,
    /// Every answer names the object to change.
    pub object: bool,
    pub worth: Worth,
}

impl Score {
    pub fn is_right(&self) -> bool {
        self.worth == Worth::Right
    }
}

pub fn score(case: &Case, answers: &[Answer]) -> Score {
    let truth = &case.truth;
    let known = [&truth.sick, &truth.sick_other, &truth.sick_alternatives, &truth.also_ok];
    let is_known = |answer: &Answer| known.iter().any(|names| goes_by(answer, names));
    let mut score = Score { cause: true, object: true, ..Score::default() };
    score.false_alarms = answers.iter().filter(|answer| !is_known(answer)).map(shown).collect();
    score.missed = missed(truth, answers);
    let mut suspected = false;
    for answer in answers.iter().filter(|answer| is_known(answer)) {
        let stated = answer.cause.to_lowercase();
        let all = format!("{stated} {}", answer.fix.to_lowercase());
        score.wrongly_blamed.extend(truth.must_not_blame.iter().filter(|words| has(&stated, words)).cloned());
        score.truth_ruled_out.extend(answer.excluded.iter().filter(|c| truth.must_not_rule_out.contains(c)).cloned());
        if truth.observable == Observable::None && answer.certain {
            score.overclaimed.push(shown(answer));
        }
        score.cause &= truth.must_mention.iter().all(|words| has(&all, words));
        let object = if answer.object.is_empty() { "none" } else { &answer.object };
        score.object &= object == truth.object_to_fix || truth.object_to_fix_alternatives.contains(object);
        let wanted = if truth.suspect_words.is_empty() { &truth.must_mention } else { &truth.suspect_words };
        let names_it = |suspect: &String| wanted.iter().all(|words| has(&suspect.to_lowercase(), words));
        suspected |= answer.suspects.iter().take(3).any(names_it);
    }
    let faults =
        [&score.false_alarms, &score.missed, &score.wrongly_blamed, &score.truth_ruled_out, &score.overclaimed];
    let is_sound = faults.iter().all(|faults| faults.is_empty());
    score.worth = if is_sound && (truth.observable == Observable::None || score.cause && score.object) {
        Worth::Right
    } else if suspected && score.false_alarms.is_empty() {
        Worth::Suspected
    } else {
        Worth::Wrong
    };
    score
}

fn missed(truth: &Truth, answers: &[Answer]) -> Vec<String> {
    let is_named = |name: &String| answers.iter().any(|answer| goes_by(answer, &BTreeSet::from([name.clone()])));
    let any = |names: &BTreeSet<String>| names.iter().any(is_named);
    if any(&truth.sick_alternatives) {
        return Vec::new();
    }
    let mut missed: Vec<String> = truth.sick.iter().filter(|name| !is_named(name)).cloned().collect();
    if !truth.sick_other.is_empty() && !any(&truth.sick_other) && !any(&truth.sick) {
        missed.extend(truth.sick_other.iter().cloned());
    }
    missed
}

/// By its name alone, or with its kind.
fn goes_by(answer: &Answer, names: &BTreeSet<String>) -> bool {
    answer
        .names
        .iter()
        .any(|name| names.contains(name) || name.split_once('/').is_some_and(|(_, alone)| names.contains(alone)))
}

/// `nat|route`: one of them.
fn has(text: &str, words: &str) -> bool {
    words.split('|').any(|word| text.contains(&word.to_lowercase()))
}

fn shown(answer: &Answer) -> String {
    answer.names.first().cloned().unwrap_or_default()
}
