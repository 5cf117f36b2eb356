//! Questions about single objects, asked one after the other when the rules of a stuck machine want the answer. A
//! question that waits, or is being asked, is not asked twice.

use engine::triage::change::Change;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// A queue of questions to the API server. The answer arrives as a [`Change`].
#[derive(Debug)]
pub struct Ask<Q> {
    waiting: Arc<Waiting<Q>>,
    most: usize,
}

#[derive(Debug)]
struct Waiting<Q> {
    questions: Mutex<Questions<Q>>,
    news: Notify,
}

#[derive(Debug)]
struct Questions<Q> {
    /// In the order in which they came.
    queue: VecDeque<Q>,
    /// The questions of the queue, and the one that is being asked.
    open: BTreeSet<Q>,
}

impl<Q: Clone + Ord + Send + 'static> Ask<Q> {
    /// Asks at most one question in each `every`. At most `most` questions may wait.
    pub(super) fn of<A>(
        most: usize,
        every: Duration,
        changes: mpsc::Sender<Change>,
        tasks: &mut JoinSet<()>,
        answer: impl Fn(Q) -> A + Send + 'static,
    ) -> Self
    where
        A: Future<Output = Change> + Send,
    {
        let questions = Mutex::new(Questions::<Q> { queue: VecDeque::new(), open: BTreeSet::new() });
        let waiting = Arc::new(Waiting { questions, news: Notify::new() });
        let asked = Arc::clone(&waiting);
        tasks.spawn(async move {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                let question = asked.next().await;
                ticks.tick().await;
                let change = answer(question.clone()).await;
                asked.questions().open.remove(&question);
                if changes.send(change).await.is_err() {
                    return;
                }
            }
        });
        Self { waiting, most }
    }

    /// Drops the question while too many wait. A rule that still wants the answer asks again.
    pub fn ask(&self, question: Q) {
        let mut questions = self.waiting.questions();
        if questions.open.contains(&question) {
            return;
        }
        if questions.queue.len() >= self.most {
            tracing::debug!("too many requests of one kind are waiting; nodewhy drops this one");
            return;
        }
        questions.open.insert(question.clone());
        questions.queue.push_back(question);
        drop(questions);
        self.waiting.news.notify_one();
    }
}

impl<Q> Waiting<Q> {
    fn questions(&self) -> MutexGuard<'_, Questions<Q>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Q {
        loop {
            let next = self.questions().queue.pop_front();
            if let Some(question) = next {
                return question;
            }
            self.news.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gone(name: &str) -> Change {
        Change::DiagnosisGone(name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_already_is_not_asked_twice_and_nobody_is_overtaken() {
        let (changes, mut answers) = mpsc::channel(100);
        let mut tasks = JoinSet::new();
        let ask = Ask::of(3, Duration::from_secs(1), changes, &mut tasks, |name: String| async move { gone(&name) });
        // A machine that waits for an answer asks at every look.
        for _ in 0..50 {
            ask.ask("a".to_owned());
        }
        for name in ["b", "c", "d"] {
            ask.ask(name.to_owned());
        }
        let mut heard = Vec::new();
        for _ in 0..3 {
            let Some(Change::DiagnosisGone(name)) = answers.recv().await else { panic!("no answer") };
            heard.push(name);
        }
        assert_eq!(heard, ["a", "b", "c"], "d finds no room, and the others are asked in turn");
        assert!(answers.try_recv().is_err());
        ask.ask("a".to_owned());
        assert!(
            matches!(answers.recv().await, Some(Change::DiagnosisGone(name)) if name == "a"),
            "once answered it may be asked again"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_panics_is_seen() {
        let (changes, _answers) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        let ask = Ask::of(3, Duration::from_secs(1), changes, &mut tasks, |name: String| async move {
            assert!(name.is_empty(), "on purpose");
            gone(&name)
        });
        ask.ask("on purpose".to_owned());
        assert!(tasks.join_next().await.is_some_and(|ended| ended.is_err()));
    }
}
