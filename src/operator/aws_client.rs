//! The operator's way to ask: questions go in, answers come as changes.

use aws::questions::Question;
use chrono::Utc;
use engine::objects::Answer;
use engine::objects::input::Object;
use engine::triage::change::Change;
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Number of lists of questions that may wait. The next look makes a newer list.
const QUEUE: usize = 1;

/// A queue of questions to AWS. The answers arrive as [`Change::Applied`].
#[derive(Debug, Clone)]
pub struct Asker(mpsc::Sender<BTreeSet<Question>>);

impl Asker {
    pub fn start(aws: aws::Client, changes: mpsc::Sender<Change>, tasks: &mut JoinSet<()>) -> Self {
        let (ask, asked) = mpsc::channel(QUEUE);
        tasks.spawn(answer(aws, asked, changes));
        Self(ask)
    }

    /// Asks. While an earlier list waits, nothing happens: whoever wants to know asks again.
    pub fn ask(&self, questions: BTreeSet<Question>) {
        if self.0.try_send(questions).is_err() {
            tracing::debug!("an AWS lookup is already running");
        }
    }
}

async fn answer(mut aws: aws::Client, mut asked: mpsc::Receiver<BTreeSet<Question>>, changes: mpsc::Sender<Change>) {
    let mut said = BTreeSet::new();
    while let Some(questions) = asked.recv().await {
        for observation in aws.answer(questions, Utc::now()).await {
            if let Answer::Refused(refusal) = &observation.answer
                && said.insert((refusal.action.clone(), refusal.denied))
            {
                tracing::warn!(action = refusal.action, why = refusal.why, "the AWS API does not answer");
            }
            if changes.send(Change::Applied(Box::new(Object::AwsObservation(observation)))).await.is_err() {
                return;
            }
        }
    }
}
