//! One backoff for all writes. While writes fail, nodewhy tries a single one, and waits longer after each failure. A
//! thousand verdicts that each try again would be a storm.

use std::time::Duration;
use tokio::time::Instant;

const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(10);
/// nodewhy waits no longer than this, even if the server asks for more.
const PATIENCE: Duration = Duration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Brake {
    /// `None` while writes succeed.
    pulled: Option<Pulled>,
}

#[derive(Debug, Clone, Copy)]
struct Pulled {
    at: Instant,
    /// The wait that follows the next failure.
    next: Duration,
    until: Instant,
}

impl Brake {
    /// How many writes may be under way at once, if `usual` is the number without failures.
    pub(super) fn abreast(&self, usual: usize) -> usize {
        if self.pulled.is_some() { 1 } else { usual }
    }

    /// When a write that is due at `due` may begin.
    pub(super) fn delay(&self, due: Instant) -> Instant {
        self.pulled.map_or(due, |pulled| pulled.until.max(due))
    }

    /// A write that began at `begun` has failed. Writes that were under way together count as one failure.
    pub(super) fn failed(&mut self, begun: Instant, now: Instant, retry_after: Option<Duration>) {
        let asked = now + retry_after.unwrap_or_default().min(PATIENCE);
        match &mut self.pulled {
            Some(pulled) if begun < pulled.at => pulled.until = pulled.until.max(asked),
            pulled => {
                let wait = pulled.map_or(FIRST, |pulled| pulled.next);
                *pulled = Some(Pulled { at: now, next: (wait * 2).min(LAST), until: asked.max(now + wait) });
            }
        }
    }

    pub(super) const fn succeeded(&mut self) {
        self.pulled = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn it_waits_longer_each_time_and_not_at_all_after_a_success() {
        let (mut brake, mut now) = (Brake::default(), Instant::now());
        assert_eq!((brake.abreast(4), brake.delay(now)), (4, now));
        for wait in [1, 2, 4, 8, 10, 10] {
            brake.failed(now, now, None);
            assert_eq!((brake.abreast(4), brake.delay(now)), (1, now + wait * SECOND));
            now += wait * SECOND;
        }
        brake.succeeded();
        assert_eq!((brake.abreast(4), brake.delay(now)), (4, now));
    }

    #[test]
    fn what_was_under_way_together_fails_once() {
        let (mut brake, begun) = (Brake::default(), Instant::now());
        let now = begun + SECOND;
        (0..4).for_each(|_| brake.failed(begun, now, None));
        assert_eq!(brake.delay(now), now + SECOND);
    }

    #[test]
    fn it_waits_as_long_as_the_api_server_asks() {
        let (mut brake, now) = (Brake::default(), Instant::now());
        brake.failed(now, now, Some(30 * SECOND));
        assert_eq!(brake.delay(now), now + 30 * SECOND);
        brake.failed(now, now, Some(Duration::from_hours(9)));
        assert_eq!(brake.delay(now), now + PATIENCE);
    }
}
