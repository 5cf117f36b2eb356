//! Texts about verdicts for the terminal and the page: machines with the same cause as one group, their outcome, and
//! the next step.

use super::clock;
use chrono::{DateTime, Utc};
use engine::api::{Confidence, Fix, NodeDiagnosis, NodeDiagnosisSpec, NodeDiagnosisStatus, Outcome, Suspect, Unknown};
use engine::case::duration;
use engine::rules::unknown;

/// A diagnosis that has a verdict.
pub type Diagnosed<'d> = (&'d NodeDiagnosis, &'d NodeDiagnosisStatus);

/// Maximum number of listed suspects. JSON has all of them.
pub const SUSPECTS: usize = 3;

/// Groups machines by cause, stage, outcome, NodePool and node class, in the order of their first machines.
pub fn groups(diagnoses: &[NodeDiagnosis]) -> Vec<Vec<Diagnosed<'_>>> {
    let mut groups: Vec<Vec<Diagnosed>> = Vec::new();
    for diagnosis in diagnoses {
        let Some(status) = &diagnosis.status else { continue };
        let same = groups.iter_mut().find(|g| {
            g.first().is_some_and(|(first, s)| {
                let spec = (&first.spec.node_pool, &first.spec.node_class, &first.spec.subject.kind);
                spec == (&diagnosis.spec.node_pool, &diagnosis.spec.node_class, &diagnosis.spec.subject.kind)
                    && (&s.cause, s.stage, s.outcome) == (&status.cause, status.stage, status.outcome)
            })
        });
        match same {
            Some(group) => group.push((diagnosis, status)),
            None => groups.push(vec![(diagnosis, status)]),
        }
    }
    groups
}

/// `NodeClaim general-7xk2p`, or `NodeClaim general-7xk2p and 11 more of NodePool general`.
pub fn who(group: &[Diagnosed]) -> String {
    let Some((first, _)) = group.first() else { return String::new() };
    let subject = &first.spec.subject;
    let named = format!("{} {}", subject.kind, subject.name);
    if group.len() == 1 {
        return named;
    }
    format!("{named} and {} more{}", group.len() - 1, of_pool(&first.spec))
}

/// ` of NodePool general`, if it belongs to one.
pub fn of_pool(spec: &NodeDiagnosisSpec) -> String {
    let kind = match spec.subject.kind.as_str() {
        "NodePool" | "Provisioner" => return String::new(),
        "Machine" => "Provisioner",
        _ => "NodePool",
    };
    spec.node_pool.as_ref().map_or_else(String::new, |pool| format!(" of {kind} {}", pool.name))
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
        format!("Karpenter deletes {name} in {} ({}), and the evidence with it.", duration(at - now), clock(at))
    } else {
        format!("Karpenter deletes {name} any moment now: its timeout passed {} ago.", duration(now - at))
    })
}

/// When Karpenter deletes the first of them, and which that is.
pub fn deadline<'d>(group: &[Diagnosed<'d>]) -> Option<(DateTime<Utc>, &'d str)> {
    let open = group.iter().filter(|(_, status)| status.ended_at.is_none());
    open.filter_map(|(diagnosis, status)| Some((status.terminates_at?, diagnosis.spec.subject.name.as_str()))).min()
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
    let open = status.unknowns.first().filter(|_| status.confidence != Confidence::Certain);
    open.map(Next::Question).or_else(|| status.fix.as_ref().map(Next::Fix))
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
