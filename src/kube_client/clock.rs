//! The time by the API server's clock.
//!
//! Objects carry its times. Where the clock of nodewhy's own machine goes wrong by minutes, a machine that has just
//! been launched would look stuck, and a stuck one young.

use axum::http::HeaderMap;
use axum::http::header::DATE;
use chrono::{DateTime, TimeDelta, Utc};
use std::sync::Once;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// An answer that took longer says too little about now.
const PROMPT: Duration = Duration::from_secs(2);
/// What whole seconds, a prompt answer and clocks that are kept by NTP differ by.
const TOLERATED: i64 = 5;

/// Our clock, and how far the API server's is ahead of it.
#[derive(Debug)]
pub struct Clock {
    ahead: AtomicI64,
    said: Once,
}

impl Default for Clock {
    fn default() -> Self {
        Self { ahead: AtomicI64::new(0), said: Once::new() }
    }
}

impl Clock {
    pub fn now(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::seconds(self.ahead())
    }

    /// Seconds by which the API server's clock is ahead of ours; 0 where they agree well enough.
    pub fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Compares the clocks, by an answer to what was asked at that time.
    pub fn observe(&self, answer: &HeaderMap, asked: Instant) {
        let date = answer.get(DATE).and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
        if let Some(date) = date.filter(|_| asked.elapsed() < PROMPT) {
            self.compare(date.to_utc(), Utc::now());
        }
    }

    fn compare(&self, theirs: DateTime<Utc>, ours: DateTime<Utc>) {
        let ahead = (theirs - ours).num_seconds();
        let ahead = if ahead.abs() <= TOLERATED { 0 } else { ahead };
        self.ahead.store(ahead, Ordering::Relaxed);
        if ahead != 0 {
            // The metric says how it goes on; several API servers may differ among themselves.
            self.said.call_once(|| {
                tracing::warn!(
                    seconds = ahead,
                    "the API server's clock is ahead of this machine's by so much; nodewhy goes by the API server's"
                );
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_count_and_seconds_do_not() {
        let ours: DateTime<Utc> = "2026-01-15T12:00:00.9Z".parse().unwrap();
        let clock = Clock::default();
        clock.compare(ours - TimeDelta::seconds(3), ours);
        assert_eq!(clock.ahead(), 0);
        clock.compare(ours - TimeDelta::minutes(10), ours);
        assert_eq!(clock.ahead(), -600);
        assert!((clock.now() - (Utc::now() - TimeDelta::minutes(10))).abs() < TimeDelta::seconds(2));
        clock.compare(ours, ours);
        assert_eq!(clock.ahead(), 0);
    }

    #[test]
    fn an_answer_that_was_long_under_way_says_nothing() {
        let headers = HeaderMap::from_iter([(DATE, "Thu, 15 Jan 2026 12:00:00 GMT".parse().unwrap())]);
        let clock = Clock::default();
        clock.observe(&headers, Instant::now().checked_sub(Duration::from_secs(20)).unwrap());
        assert_eq!(clock.ahead(), 0);
        clock.observe(&headers, Instant::now());
        assert_ne!(clock.ahead(), 0);
    }
}
