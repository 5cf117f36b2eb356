//! Turns a verdict, or the end of a machine, into a diagnosis that is opened, changed or closed, or into nothing.

use super::history::{History, Incident};
use super::outbox::Write;
use super::{last_words, verdict_diff};
use crate::api::schema_limits::EARLIER;
use crate::api::{Condition, Confidence, EarlierVerdict, NodeDiagnosis, Outcome, Stage};
use crate::case::changed::is_forgotten;
use crate::case::deletion_reason;
use crate::case::timeout;
use crate::cluster_state::{ClusterState, Subject};
use crate::diagnose;
use crate::facts::told_by_aws;
use crate::remediation::{self, Remark, remediated};
use crate::rules;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Arc;

/// Karpenter deletes claims that cannot launch at once and creates new ones. For this long, one diagnosis per cause
/// covers all of them.
const NEVER_LAUNCHED_AGAIN: TimeDelta = TimeDelta::hours(1);

/// What a look changes: a diagnosis to write, or nothing.
#[derive(Debug)]
pub(super) enum Update {
    Nothing,
    Changed(Box<ChangedDiagnosis>),
    /// A half-written diagnosis without a verdict. Its writer died, and the machine is gone.
    Void(String),
}

/// A diagnosis that has news.
#[derive(Debug)]
pub(super) struct ChangedDiagnosis {
    diagnosis: NodeDiagnosis,
    replaces: bool,
    announces: bool,
}

impl ChangedDiagnosis {
    pub(super) fn into_write(mut self, history: &History, cluster: &ClusterState) -> Write {
        if self.diagnosis.is_final() {
            last_words::keep(&mut self.diagnosis, cluster);
        }
        let before = self.diagnosis.metadata.name.as_deref().and_then(|name| history.get(name));
        // The diagnosis of each machine has reported its own end.
        let ends = self.diagnosis.outcome().filter(|_| !self.diagnosis.speaks_for_machines());
        let joined = || cluster.claim(&self.diagnosis.spec.subject.name).is_some_and(|c| c.is_true("Registered"));
        Write {
            first: self.announces && before.is_none_or(|before| !before.is_open()),
            in_vain: ends.and_then(|_| self.diagnosis.ran_in_vain()).filter(|_| !joined()),
            ends,
            diagnosis: Arc::new(self.diagnosis),
            replaces: self.replaces,
            announces: self.announces,
        }
    }
}

/// Reports a new cause. The machine may have an older diagnosis.
fn opened(diagnosis: NodeDiagnosis, replaces: bool) -> Update {
    Update::Changed(Box::new(ChangedDiagnosis { diagnosis, replaces, announces: true }))
}

/// Changes a diagnosis without an Event: the same cause again, or a NodePool that repeats its machines.
pub(super) fn unannounced(diagnosis: NodeDiagnosis, replaces: bool) -> Update {
    Update::Changed(Box::new(ChangedDiagnosis { diagnosis, replaces, announces: false }))
}

/// Records the replaced verdict in the new diagnosis, so that a reused name keeps its history.
pub(super) fn note_earlier(history: &History, new: &mut NodeDiagnosis, known: &NodeDiagnosis, now: DateTime<Utc>) {
    let (Some(new), Some(before)) = (&mut new.status, &known.status) else { return };
    let replaced = EarlierVerdict {
        uid: known.spec.subject.uid.clone(),
        stage: before.stage,
        cause: before.cause.clone(),
        confidence: before.confidence,
        summary: before.summary.clone(),
        first_observed_at: before.first_observed_at,
        ended_at: before.ended_at.unwrap_or(now),
        outcome: before.outcome.unwrap_or(Outcome::Deleted),
    };
    let is_kept = |earlier: &EarlierVerdict| now - earlier.ended_at < history.retention();
    new.earlier = std::iter::once(replaced).chain(before.earlier.clone()).filter(is_kept).take(EARLIER).collect();
}

/// The change that a verdict makes to the known diagnosis.
pub(super) fn judged(history: &History, cluster: &ClusterState, mut new: NodeDiagnosis, now: DateTime<Utc>) -> Update {
    let Some(name) = new.metadata.name.clone() else { return Update::Nothing };
    let Some(known) = history.get(&name) else {
        if is_spoken_for(history, &new, now) {
            return Update::Nothing;
        }
        number(history, &mut new);
        return opened(new, false);
    };
    if !known.spec.subject.stands_for(&new.spec.subject.uid) || known.spec.subject.kind != new.spec.subject.kind {
        // A Node's diagnosis never replaces the remaining diagnosis of a NodeClaim of the same name.
        if new.spec.subject.kind == "Node" && known.spec.subject.kind != "Node" {
            return Update::Nothing;
        }
        number(history, &mut new);
        note_earlier(history, &mut new, known, now);
        return opened(new, true);
    }
    verdict_diff::keep_remediation(&mut new, known);
    match known.outcome() {
        // The earlier verdict ended with the deletion. A hanging deletion is new.
        Some(Outcome::Deleted) if new.is_open() => {
            note_earlier(history, &mut new, known, now);
            return opened(new, false);
        }
        Some(Outcome::Terminated | Outcome::Deleted) => return Update::Nothing,
        Some(Outcome::Recovered) => {
            // The same machine is stuck again, which counts as one more.
            number(history, &mut new);
            note_earlier(history, &mut new, known, now);
            return opened(new, false);
        }
        None => {}
    }
    if !new.is_open() && !outweighs(&new, known) {
        // Nodes and Events disappear before their claim. The verdict from before that stays, and ends now.
        let ended = new.status.as_ref().and_then(|s| Some((s.outcome?, s.ended_at?)));
        return ended.map_or(Update::Nothing, |(outcome, at)| closed(history, cluster, &name, outcome, at));
    }
    if stands(known, &new) || is_remembered(cluster, known, &new) {
        return Update::Nothing;
    }
    verdict_diff::keep(&mut new, known);
    if verdict_diff::same(known, &new) {
        return Update::Nothing;
    }
    if known.cause() == new.cause() {
        return unannounced(new, false);
    }
    number(history, &mut new);
    opened(new, false)
}

/// Ends an open diagnosis.
pub(super) fn closed(
    history: &History,
    cluster: &ClusterState,
    name: &str,
    outcome: Outcome,
    at: DateTime<Utc>,
) -> Update {
    let Some(mut diagnosis) = history.get(name).filter(|d| d.is_open()).cloned() else { return Update::Nothing };
    if diagnosis.status.is_none() {
        return Update::Void(name.to_owned());
    }
    let why = cluster.claim(&diagnosis.spec.subject.name).and_then(|claim| deletion_reason::reason(cluster, claim, at));
    diagnose::close(&mut diagnosis, outcome, at, why.as_deref());
    unannounced(diagnosis, false)
}

/// Records in a diagnosis what remediation did or refused. `None` if it is recorded already.
pub(super) fn noted(history: &History, remark: &Remark, now: DateTime<Utc>) -> Option<NodeDiagnosis> {
    let mut diagnosis = history.get(&remark.diagnosis)?.clone();
    let before = remediated(&diagnosis);
    if before.is_some_and(|c| c.reason == remark.reason) {
        return None;
    }
    let status = remark.result.status();
    let since = before.filter(|c| c.status == status).map_or(now, |c| c.last_transition_time);
    let verdict = diagnosis.status.as_mut()?;
    verdict.conditions.retain(|c| c.type_ != remediation::CONDITION);
    verdict.conditions.push(Condition {
        type_: remediation::CONDITION.into(),
        status: status.into(),
        last_transition_time: since,
        reason: remark.reason.into(),
        message: remark.message.clone().into(),
        observed_generation: None,
    });
    Some(diagnosis)
}

/// How and when a claim that is being deleted ends.
pub(super) fn leaving(cluster: &ClusterState, subject: &Subject) -> Option<(Outcome, DateTime<Utc>)> {
    let deleted = match subject {
        Subject::Claim(name) => {
            let claim = cluster.claim(name)?;
            let deleted = claim.metadata.deletion_timestamp?;
            return Some((timeout::outcome(claim, deleted), deleted));
        }
        Subject::Node(name) => cluster.node(name)?.metadata.deletion_timestamp,
        Subject::Class(kind, name) => cluster.class(kind, name)?.class.metadata.deletion_timestamp,
        Subject::Pool(_) | Subject::Instance(_) | Subject::Karpenter(_) => None,
    };
    Some((Outcome::Deleted, deleted?))
}

/// Counts the machines that failed by the same cause before, as far as the objects show.
fn number(history: &History, new: &mut NodeDiagnosis) {
    let earlier = history.machines(&Incident::of(new));
    if let Some(status) = &mut new.status {
        status.recurrences = status.recurrences.max(earlier);
    }
}

/// Whether a claim that never launched and is gone adds nothing, because another one of its pool has the same cause.
fn is_spoken_for(history: &History, new: &NodeDiagnosis, now: DateTime<Utc>) -> bool {
    let launch = |d: &NodeDiagnosis| d.status.as_ref().is_some_and(|s| s.stage == Stage::Launch);
    let recent =
        |d: &NodeDiagnosis| d.status.as_ref().and_then(|s| s.ended_at).is_none_or(|at| now - at < NEVER_LAUNCHED_AGAIN);
    !new.is_open() && launch(new) && history.of(&Incident::of(new)).any(|d| launch(d) && recent(d))
}

/// Whether the last verdict is stronger than the known one.
fn outweighs(last: &NodeDiagnosis, standing: &NodeDiagnosis) -> bool {
    let known = |d: &NodeDiagnosis| d.cause().is_some_and(|c| c != rules::unknown::CAUSE);
    let confidence = |d: &NodeDiagnosis| d.status.as_ref().map(|s| s.confidence);
    known(last)
        && (!known(standing) || confidence(last) > confidence(standing))
        && confidence(last) > Some(Confidence::Possible)
}

/// Whether to keep a verdict that was proven with an earlier text of a node class or NodePool. After a restart nodewhy
/// no longer has that text and could not prove it again.
fn is_remembered(cluster: &ClusterState, known: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let claim = new.spec.node_claim.as_ref().and_then(|named| cluster.claim(&named.name));
    let (Some(known), Some(new), Some(claim)) = (&known.status, &new.status, claim) else { return false };
    let is_weaker = known.confidence == Confidence::Certain && new.confidence != Confidence::Certain;
    is_weaker
        && new.outcome.is_none()
        && known.stage == new.stage
        && known.blame.as_ref().is_some_and(|blame| is_forgotten(cluster, claim, blame))
}

/// Whether to keep a verdict that AWS proved before a restart or for the previous leader, until AWS has answered this
/// replica.
fn stands(known: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let (Some(known), Some(new)) = (&known.status, &new.status) else { return false };
    let told = known.confidence == Confidence::Certain && told_by_aws::is_told(known);
    told && new.outcome.is_none()
        && known.stage == new.stage
        && told_by_aws::leaves_open(new)
        && !told_by_aws::is_told(new)
}
