//! What the operator asks AWS about: machines that are stuck for a reason that the cluster does not prove.

use crate::operator::aws_client::Asker;
use aws::Options;
use aws::questions::{self, Question};
use chrono::{DateTime, TimeDelta, Utc};
use engine::facts::told_by_aws;
use engine::triage::Triage;
use engine::triage::change::Change;
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Between two looks at what is open. Answers are kept for longer than that.
const EVERY: TimeDelta = TimeDelta::seconds(5);
/// Consoles that are read of one node class: they are one call each, and machines of one class print the same.
const CONSOLES: usize = 3;

pub(super) struct AskAws {
    options: Options,
    changes: mpsc::Sender<Change>,
    /// The client of AWS, once the region is known.
    asker: Option<Asker>,
    next: DateTime<Utc>,
    complained: bool,
}

impl AskAws {
    pub fn new(options: Options, changes: mpsc::Sender<Change>) -> Self {
        Self { options, changes, asker: None, next: DateTime::UNIX_EPOCH, complained: false }
    }

    /// Asks what is open.
    pub fn look(&mut self, triage: &Triage, tasks: &mut JoinSet<()>, now: DateTime<Utc>) {
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        let questions = open(triage, now);
        if questions.is_empty() {
            return;
        }
        if self.asker.is_none() {
            match aws::Client::new(&self.options, triage.cluster()) {
                Ok(aws) => {
                    tracing::info!(region = aws.region(), "AWS lookups are on");
                    self.asker = Some(Asker::start(aws, self.changes.clone(), tasks));
                }
                Err(error) if !self.complained => {
                    tracing::warn!(%error, "cannot call the AWS API");
                    self.complained = true;
                }
                Err(_) => {}
            }
        }
        if let Some(asker) = &self.asker {
            asker.ask(questions);
        }
    }
}

fn open(triage: &Triage, now: DateTime<Utc>) -> BTreeSet<Question> {
    let mut consoles: BTreeMap<Option<String>, usize> = BTreeMap::new();
    let mut questions = BTreeSet::new();
    for (case, verdict) in triage.cases(now, told_by_aws::concerns) {
        let of_class = consoles.entry(case.class_object()).or_default();
        for question in questions::still_open(&case, verdict) {
            if matches!(question, Question::Console(_)) {
                *of_class += 1;
                if *of_class > CONSOLES {
                    continue;
                }
            }
            questions.insert(question);
        }
    }
    questions
}
