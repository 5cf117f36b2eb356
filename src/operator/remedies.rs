//! Hands the decisions of remediation to the task that carries them out. Nothing here waits, because every verdict
//! would wait too.

use crate::operator::lease::Leads;
use crate::operator::metrics::Metrics;
use crate::operator::publish::remedy::{self, Ordered, Remedy};
use chrono::{DateTime, Utc};
use engine::remediation::{Doubts, Limits, PatchAnswer, Remark, Remediation, Removal, RemovalOutcome, Step};
use engine::triage::Triage;
use kube::Client;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;

pub(super) struct Remedies {
    remediation: Remediation,
    orders: mpsc::Sender<Ordered>,
    answers: mpsc::UnboundedReceiver<(Removal, PatchAnswer)>,
    metrics: Arc<Metrics>,
    /// The term that this replica leads in.
    term: Option<u64>,
}

impl Remedies {
    pub(super) fn start(
        client: Client,
        instance: &str,
        leads: Leads,
        limits: Limits,
        metrics: Arc<Metrics>,
        tasks: &mut JoinSet<()>,
    ) -> Self {
        let (orders, answers) = remedy::start(client, instance, leads, tasks);
        Self { remediation: Remediation::new(limits), orders, answers, metrics, term: None }
    }

    /// From now on this replica leads in that term, or in none.
    pub(super) const fn follow(&mut self, term: Option<u64>) {
        self.term = term;
    }

    /// The next answer to a removal.
    pub(super) async fn answer(&mut self) -> Option<(Removal, PatchAnswer)> {
        self.answers.recv().await
    }

    /// Takes in how a removal went.
    pub(super) fn take_answer(
        &mut self,
        removal: &Removal,
        answer: PatchAnswer,
        triage: &mut Triage,
        now: DateTime<Utc>,
    ) {
        if let Some(remark) = self.remediation.done(removal, answer, now) {
            self.say(remark, triage, now);
        }
    }

    /// Acts on the verdicts as they are now. Only for the replica that leads.
    pub(super) fn look(&mut self, triage: &mut Triage, doubts: &Doubts, now: DateTime<Utc>) {
        let is_written = |name: &str| triage.is_written(name);
        let steps = self.remediation.look(triage.cluster(), &triage.diagnoses(), is_written, doubts, now);
        for step in steps {
            match step {
                Step::Remove(removal) => {
                    if let Some(Remedy::Remove(removal)) = self.order(Remedy::Remove(Box::new(removal))) {
                        // It was not sent. The next look decides again.
                        self.remediation.done(&removal, PatchAnswer::Void, now);
                    }
                }
                Step::Say(remark) => self.say(remark, triage, now),
            }
        }
    }

    /// Counts what stays as it is. Every replica may: the reasons are in the diagnoses.
    pub(super) fn count(&self, triage: &Triage, now: DateTime<Utc>) {
        self.metrics.taints_kept(self.remediation.kept(triage.diagnoses(), now));
    }

    /// In the diagnosis, the metric, the log and an Event; once.
    fn say(&self, remark: Remark, triage: &mut Triage, now: DateTime<Utc>) {
        let Some(diagnosis) = triage.note(&remark, now) else { return };
        let Remark { diagnosis: name, result, reason, message } = &remark;
        self.metrics.remediated(*result, reason);
        match result {
            RemovalOutcome::Announced | RemovalOutcome::Removed | RemovalOutcome::DryRun => {
                tracing::info!(name, ?result, reason, message, "remediation");
            }
            _ => tracing::warn!(name, ?result, reason, message, "remediation"),
        }
        if let Some(Remedy::Tell(_, remark)) = self.order(Remedy::Tell(diagnosis, remark)) {
            tracing::warn!(
                name = remark.diagnosis,
                reason = remark.reason,
                "an Event is not sent, because too many Events are waiting or this replica no longer leads"
            );
        }
    }

    /// Returns the remedy if it cannot be ordered now.
    fn order(&self, remedy: Remedy) -> Option<Remedy> {
        let Some(term) = self.term else { return Some(remedy) };
        match self.orders.try_send(Ordered { term, remedy }) {
            Ok(()) => None,
            Err(TrySendError::Full(ordered) | TrySendError::Closed(ordered)) => Some(ordered.remedy),
        }
    }
}
