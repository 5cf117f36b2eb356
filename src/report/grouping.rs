//! Texts about verdicts for the terminal and the page: machines with the same cause as one group, their outcome, and
//! the next step.

use super::clock;
use super::judged::counted_as;
use chrono::{DateTime, Utc};
use engine::api::{
    Confidence, Fix, Named, NodeDiagnosis, NodeDiagnosisSpec, NodeDiagnosisStatus, Outcome, Stage, Suspect, Unknown,
};
use engine::case::duration;
use engine::diagnose::{Topic, topic};
use engine::rules::unknown;

/// A diagnosis that has a verdict.
pub type Diagnosed<'d> = (&'d NodeDiagnosis, &'d NodeDiagnosisStatus);

/// Maximum number of listed suspects. JSON has all of them.
pub const SUSPECTS: usize = 3;

/// Groups machines by cause, stage, outcome, NodePool and node class, in the order of their first machines. Machines of
/// other pools, or of none, belong to a group if the same place is to blame and the fix is the same. The machine that
/// Karpenter deletes first speaks for its group, so that what is said of it and its deadline are of one machine.
pub fn groups(diagnoses: &[NodeDiagnosis]) -> Vec<Vec<Diagnosed<'_>>> {
    let mut groups: Vec<Vec<Diagnosed>> = Vec::new();
    for diagnosis in diagnoses {
        let Some(status) = &diagnosis.status else { continue };
        let same =
            groups.iter_mut().find(|group| group.first().is_some_and(|first| is_same(*first, (diagnosis, status))));
        match same {
            Some(group) => group.push((diagnosis, status)),
            None => groups.push(vec![(diagnosis, status)]),
        }
    }
    for group in &mut groups {
        group.sort_by_key(|(_, status)| (terminates(status).is_none(), terminates(status)));
    }
    groups
}

fn is_same((one, status): Diagnosed, (other, its): Diagnosed) -> bool {
    let ends_alike = (&status.cause, status.stage, status.outcome) == (&its.cause, its.stage, its.outcome);
    ends_alike && (is_launched_alike(&one.spec, &other.spec) || is_told_alike(one, status, other, its))
}

fn is_launched_alike(one: &NodeDiagnosisSpec, other: &NodeDiagnosisSpec) -> bool {
    let launched = (&one.node_pool, &one.node_class, &one.subject.kind);
    launched == (&other.node_pool, &other.node_class, &other.subject.kind)
}

fn is_told_alike(
    one: &NodeDiagnosis,
    status: &NodeDiagnosisStatus,
    other: &NodeDiagnosis,
    its: &NodeDiagnosisStatus,
) -> bool {
    let is_machine = |diagnosis: &NodeDiagnosis| matches!(diagnosis.spec.subject.kind.as_str(), "NodeClaim" | "Node");
    let advice = |status: &NodeDiagnosisStatus| status.fix.as_ref().map(|fix| fix.summary.clone());
    let is_blamed_alike = status.blame.is_some() && status.blame == its.blame;
    is_machine(one) && is_machine(other) && is_blamed_alike && advice(status) == advice(its)
}

/// `12 NodeClaims`, or `3 machines` of several kinds.
pub fn counted(group: &[Diagnosed]) -> String {
    let Some((first, _)) = group.first() else { return String::new() };
    let kind = &first.spec.subject.kind;
    let is_one_kind = group.iter().all(|(diagnosis, _)| diagnosis.spec.subject.kind == *kind);
    counted_as(group.len(), if is_one_kind { kind.as_str() } else { "machine" })
}

/// What all of the group have here, such as one NodePool.
pub fn shared<'d>(group: &[Diagnosed<'d>], part: fn(&NodeDiagnosisSpec) -> &Option<Named>) -> Option<&'d Named> {
    let (first, _) = group.first()?;
    let is_shared = group.iter().all(|(diagnosis, _)| part(&diagnosis.spec) == part(&first.spec));
    part(&first.spec).as_ref().filter(|_| is_shared)
}

/// `NodeClaim general-7xk2p`, or `NodeClaim general-7xk2p and 11 more of NodePool general`.
pub fn who(group: &[Diagnosed]) -> String {
    let Some((first, _)) = group.first() else { return String::new() };
    let subject = &first.spec.subject;
    let named = format!("{} {}", subject.kind, subject.name);
    if group.len() == 1 {
        return named;
    }
    format!("{named} and {} more{}", group.len() - 1, of_pool(group))
}

/// `stuck at Join for 7m 48s`. The stage Ready has another word: "stuck at Ready" sounds as if being Ready were wrong.
pub fn stuck(stage: Stage, waited: &str) -> String {
    match stage {
        Stage::Ready => format!("unusable for {waited}"),
        _ => format!("stuck at {stage:?} for {waited}"),
    }
}

/// ` of NodePool general`, if all of the group belong to one.
pub fn of_pool(group: &[Diagnosed]) -> String {
    let kind = match group.first().map(|(first, _)| first.spec.subject.kind.as_str()) {
        None | Some("NodePool" | "Provisioner") => return String::new(),
        Some("Machine") => "Provisioner",
        Some(_) => "NodePool",
    };
    shared(group, |spec| &spec.node_pool).map_or_else(String::new, |pool| format!(" of {kind} {}", pool.name))
}

/// How it ended, or when Karpenter deletes the first of them.
pub fn fate(group: &[Diagnosed], now: DateTime<Utc>) -> Option<String> {
    let (_, status) = group.first()?;
    if let (Some(outcome), Some(at)) = (status.outcome, status.ended_at) {
        let how = match outcome {
            Outcome::Recovered => "It recovered",
            Outcome::Terminated => "Karpenter's timeout deleted it",
            Outcome::Deleted => "It was deleted",
        };
        return Some(format!("{how} at {}.", clock(at)));
    }
    let (at, name) = deadline(group)?;
    Some(if at > now {
        let first = if deadlines(group).nth(1).is_some() { " first," } else { "" };
        // A proven cause needs no evidence any more.
        let evidence = if status.confidence == Confidence::Certain { "" } else { ", and the evidence with it" };
        format!("Karpenter deletes {name}{first} in {} ({}){evidence}.", duration(at - now), clock(at))
    } else {
        let timeout = if status.stage == Stage::Launch { "launch" } else { "registration" };
        format!("{name} is {} over Karpenter's {timeout} timeout: expect Karpenter to delete it.", duration(now - at))
    })
}

/// The command that keeps the evidence, if Karpenter deletes it before the cause is proven.
pub fn saving(group: &[Diagnosed], now: DateTime<Utc>) -> Option<&'static str> {
    let (_, status) = group.first()?;
    let is_open = status.confidence != Confidence::Certain && status.ended_at.is_none();
    let (at, _) = deadline(group)?;
    (is_open && at > now).then_some(unknown::SAVE)
}

/// When Karpenter deletes the first of them, and which that is.
pub fn deadline<'d>(group: &[Diagnosed<'d>]) -> Option<(DateTime<Utc>, &'d str)> {
    deadlines(group).min()
}

fn deadlines<'d>(group: &[Diagnosed<'d>]) -> impl Iterator<Item = (DateTime<Utc>, &'d str)> {
    group.iter().filter_map(|(diagnosis, status)| Some((terminates(status)?, diagnosis.spec.subject.name.as_str())))
}

/// When Karpenter deletes it, if it is still stuck.
fn terminates(status: &NodeDiagnosisStatus) -> Option<DateTime<Utc>> {
    status.terminates_at.filter(|_| status.ended_at.is_none())
}

/// What to do next.
#[derive(Debug)]
pub enum Next<'s> {
    /// Look whether it is this one, then the others.
    Suspect(&'s Suspect, &'s [Suspect]),
    /// Answer this.
    Question(&'s Unknown),
    Fix(&'s Fix),
}

pub fn next(status: &NodeDiagnosisStatus) -> Option<Next<'_>> {
    // A guess at a root cause has its own question, which comes before other guesses.
    let is_guess = status.confidence == Confidence::Possible && status.cause != unknown::CAUSE;
    if let [first, others @ ..] = &status.suspects[..]
        && !is_guess
    {
        return Some(Next::Suspect(first, others));
    }
    let fix = status.fix.as_ref().map(Next::Fix);
    let Some(open) = status.unknowns.first().filter(|_| status.confidence != Confidence::Certain) else { return fix };
    // The end of the answer says what the dump lacks. A likely cause has a fix that helps more.
    let is_about_input = matches!(topic(open), Topic::UnreadInput(_));
    if is_about_input && status.confidence == Confidence::Likely && fix.is_some() {
        return fix;
    }
    Some(Next::Question(open))
}

/// The observations that exclude causes, each with all causes that it excludes. One often excludes several.
pub fn excluded(status: &NodeDiagnosisStatus) -> Vec<(&str, Vec<&str>)> {
    let mut excluded: Vec<(&str, Vec<&str>)> = Vec::new();
    for ruled_out in &status.ruled_out {
        match excluded.iter_mut().find(|(because, _)| *because == &*ruled_out.because) {
            Some((_, causes)) => causes.push(&ruled_out.cause),
            None => excluded.push((&ruled_out.because, vec![&ruled_out.cause])),
        }
    }
    excluded
}
