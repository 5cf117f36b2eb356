//! Between the verdicts and the one who carries out what remediation decides.

use crate::operator::lease::Leads;
use crate::operator::metrics::Metrics;
use crate::operator::publish::remedy::{self, Remedy};
use chrono::{DateTime, Utc};
use engine::remediation::{Doubts, Limits, PatchAnswer, Remark, Remediation, Removal, RemovalOutcome, Step};
use engine::triage::Triage;
use kube::Client;
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) struct Remedies {
    remediation: Remediation,
    orders: mpsc::Sender<Remedy>,
    answers: mpsc::UnboundedReceiver<(Removal, PatchAnswer)>,
    metrics: Arc<Metrics>,
}

impl Remedies {
    pub(super) fn start(client: Client, instance: &str, leads: Leads, limits: Limits, metrics: Arc<Metrics>) -> Self {
        let (orders, answers) = remedy::start(client, instance, leads);
        Self { remediation: Remediation::new(limits), orders, answers, metrics }
    }

    /// The next answer to a removal.
    pub(super) async fn answer(&mut self) -> Option<(Removal, PatchAnswer)> {
        self.answers.recv().await
    }

    /// Takes in how a removal went.
    pub(super) async fn take_answer(
        &mut self,
        removal: &Removal,
        answer: PatchAnswer,
        triage: &mut Triage,
        now: DateTime<Utc>,
    ) {
        if let Some(remark) = self.remediation.done(removal, answer, now) {
            self.say(remark, triage, now).await;
        }
    }

    /// Acts on the verdicts as they are now. Only for the replica that leads.
    pub(super) async fn look(&mut self, triage: &mut Triage, doubts: &Doubts, now: DateTime<Utc>) {
        let is_written = |name: &str| triage.is_written(name);
        let steps = self.remediation.look(triage.cluster(), &triage.diagnoses(), is_written, doubts, now);
        for step in steps {
            match step {
                Step::Remove(removal) => self.order(Remedy::Remove(Box::new(removal))).await,
                Step::Say(remark) => self.say(remark, triage, now).await,
            }
        }
    }

    /// Counts what stays as it is. Every replica may: the reasons are in the diagnoses.
    pub(super) fn count(&self, triage: &Triage, now: DateTime<Utc>) {
        self.metrics.taints_kept(self.remediation.kept(triage.diagnoses(), now));
    }

    /// In the diagnosis, the metric, the log and an Event; once.
    async fn say(&self, remark: Remark, triage: &mut Triage, now: DateTime<Utc>) {
        let Some(diagnosis) = triage.note(&remark, now) else { return };
        let Remark { diagnosis: name, result, reason, message } = &remark;
        self.metrics.remediated(*result, reason);
        match result {
            RemovalOutcome::Announced | RemovalOutcome::Removed | RemovalOutcome::DryRun => {
                tracing::info!(name, ?result, reason, message, "remediation");
            }
            _ => tracing::warn!(name, ?result, reason, message, "remediation"),
        }
        self.order(Remedy::Tell(diagnosis, remark)).await;
    }

    async fn order(&self, remedy: Remedy) {
        if self.orders.send(remedy).await.is_err() {
            tracing::error!("nobody carries out remedies any more");
        }
    }
}
