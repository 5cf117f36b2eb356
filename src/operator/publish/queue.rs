//! What waits to be written: the newest of each key, that which has waited longest first.

use super::{Task, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LAST: Duration = Duration::from_mins(1);

/// Something that waits to be written.
#[derive(Debug)]
pub(super) struct WaitingTask {
    pub(super) task: Task,
    not_before: Instant,
    retry: Duration,
}

impl WaitingTask {
    /// Takes over what the earlier one had still to do.
    fn overtake(&mut self, earlier: &Self) {
        if let (Work::Write(write), Work::Write(earlier)) = (&mut self.task.work, &earlier.task.work) {
            write.overtake(earlier);
        }
        self.not_before = earlier.not_before;
        self.retry = earlier.retry;
    }
}

/// In order of time: after thousands of machines fell ill at once it is long for minutes, and is looked at in each of
/// their writes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: BTreeMap<String, WaitingTask>,
    /// Those whose keys are not being written.
    order: BTreeSet<(Instant, String)>,
    busy: BTreeSet<String>,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Puts a task in the place of what waits under its key.
    pub(super) fn put(&mut self, task: Task, not_before: Instant) {
        let key = task.work.key();
        let mut waiting = WaitingTask { task, not_before, retry: RETRY_FIRST };
        if let Some(before) = self.waiting.remove(&key) {
            self.order.remove(&(before.not_before, key.clone()));
            waiting.overtake(&before);
        }
        if !self.busy.contains(&key) {
            self.order.insert((waiting.not_before, key.clone()));
        }
        self.waiting.insert(key, waiting);
    }

    /// When the next one may be written.
    pub(super) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out that one. Another of its key then waits until it is `finished` or `failed`.
    pub(super) fn begin(&mut self) -> Option<WaitingTask> {
        let (_, key) = self.order.pop_first()?;
        let waiting = self.waiting.remove(&key);
        self.busy.insert(key);
        waiting
    }

    /// It is written, or never will be.
    pub(super) fn finished(&mut self, key: &str) {
        self.busy.remove(key);
        if let Some(newer) = self.waiting.get(key) {
            self.order.insert((newer.not_before, key.to_owned()));
        }
    }

    /// It could not be written at `now`: it waits longer each time, or the newer one does what it had to do.
    pub(super) fn failed(&mut self, mut failed: WaitingTask, now: Instant) {
        let key = failed.task.work.key();
        if let Some(newer) = self.waiting.get_mut(&key) {
            newer.overtake(&failed);
        } else {
            failed.not_before = now + failed.retry;
            failed.retry = (failed.retry * 2).min(RETRY_LAST);
            self.waiting.insert(key.clone(), failed);
        }
        self.finished(&key);
    }

    /// Drops what was decided in another term.
    pub(super) fn retain(&mut self, term: Option<u64>) {
        self.waiting.retain(|_, waiting| Some(waiting.task.term) == term);
        self.order.retain(|(_, key)| self.waiting.contains_key(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::triage::Delete;

    const SECOND: Duration = Duration::from_secs(1);

    fn task(name: &str, term: u64) -> Task {
        Task { term, work: Work::Delete(Delete { name: name.to_owned(), uid: None }) }
    }

    fn begin(queue: &mut Queue) -> Option<String> {
        queue.begin().map(|waiting| waiting.task.work.key())
    }

    #[test]
    fn what_has_waited_longest_comes_first_and_a_newer_one_keeps_its_place() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.put(task("b", 1), now);
        queue.put(task("a", 1), now + SECOND);
        queue.put(task("b", 1), now + 2 * SECOND);
        assert_eq!((queue.len(), queue.next()), (2, Some(now)));
        assert_eq!(
            [begin(&mut queue), begin(&mut queue), begin(&mut queue)],
            [Some("b".to_owned()), Some("a".to_owned()), None]
        );
        assert!(queue.is_empty());
    }

    #[test]
    fn a_newer_one_waits_for_the_end_of_that_which_is_being_written() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.put(task("a", 1), now);
        queue.begin();
        queue.put(task("a", 1), now);
        assert_eq!((queue.len(), queue.next()), (1, None));
        queue.finished("a");
        assert_eq!((queue.next(), begin(&mut queue)), (Some(now), Some("a".to_owned())));
        queue.finished("a");
        assert_eq!((queue.next(), queue.is_empty()), (None, true));
    }

    #[test]
    fn what_fails_waits_longer_each_time_unless_there_is_a_newer_one() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.put(task("a", 1), now);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            let failed = queue.begin().unwrap();
            queue.failed(failed, now);
            assert_eq!(queue.next(), Some(now + wait * SECOND));
        }
        let failed = queue.begin().unwrap();
        queue.put(task("a", 1), now + 99 * SECOND);
        queue.failed(failed, now);
        assert_eq!((queue.len(), queue.next()), (1, Some(now + 60 * SECOND)), "at its time, not after another minute");
    }

    #[test]
    fn what_another_term_decided_is_dropped() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.put(task("a", 1), now);
        queue.put(task("b", 2), now);
        queue.retain(Some(2));
        assert_eq!([begin(&mut queue), begin(&mut queue)], [Some("b".to_owned()), None]);
        queue.put(task("b", 2), now);
        queue.retain(None);
        queue.finished("b");
        assert_eq!((queue.next(), queue.is_empty()), (None, true));
    }
}
