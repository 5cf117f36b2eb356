//! Questions about single things, asked one after the other when a stuck machine's rules want the answer.

use engine::triage::change::Change;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// Where something is asked for. The answer comes as a [`Change`].
#[derive(Debug, Clone)]
pub struct Ask<Q>(mpsc::Sender<Q>);

impl<Q: Send + 'static> Ask<Q> {
    /// Asks no more often than `every` so long; `queue` questions may wait.
    pub(super) fn of<A>(
        queue: usize,
        every: Duration,
        changes: mpsc::Sender<Change>,
        answer: impl Fn(Q) -> A + Send + 'static,
    ) -> Self
    where
        A: Future<Output = Change> + Send,
    {
        let (ask, mut asked) = mpsc::channel(queue);
        tokio::spawn(async move {
            let mut ticks = interval(every);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while let Some(question) = asked.recv().await {
                ticks.tick().await;
                if changes.send(answer(question).await).await.is_err() {
                    return;
                }
            }
        });
        Self(ask)
    }

    /// While too many wait, nothing happens: whoever wants to know asks again.
    pub fn ask(&self, question: Q) {
        if self.0.try_send(question).is_err() {
            tracing::debug!("too many questions of a kind wait");
        }
    }
}
