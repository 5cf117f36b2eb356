//! The time of the API server.
//!
//! Objects carry its times. If nodewhy's own clock were wrong by minutes, a machine that was just launched would look
//! stuck, and a stuck one young. A single answer may be wrong by as much, if it comes from a proxy or from one API
//! server of three. So nodewhy measures the time itself, and moves it only when most of the last answers agree that it
//! is wrong.

use super::slept::slept;
use axum::http::header::DATE;
use axum::http::{HeaderMap, StatusCode};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A slower answer says too little about the present.
const PROMPT: Duration = Duration::from_secs(2);
/// Normal difference from rounding, the time of the answer, and clocks synchronized by NTP.
const TOLERATED: TimeDelta = TimeDelta::seconds(5);
/// This many answers are kept.
const ANSWERS: usize = 5;
/// This many of them must agree before the time moves.
const MOST: usize = 3;
/// Answers that come together count as one.
const APART: TimeDelta = TimeDelta::seconds(1);

/// The API server's clock, as far as its answers tell it.
#[derive(Debug)]
pub struct Clock {
    begun: Instant,
    slept: Duration,
    told: Mutex<ServerTime>,
    said: Once,
    doubt: Notify,
}

#[derive(Debug)]
struct ServerTime {
    /// The time at which our measurement began.
    begin: DateTime<Utc>,
    /// The time at which it began by each of the last answers, oldest first.
    answers: VecDeque<DateTime<Utc>>,
    /// When the last answer came, measured from that beginning.
    last: Option<TimeDelta>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            slept: slept(),
            told: Mutex::new(ServerTime { begin: Utc::now(), answers: VecDeque::with_capacity(ANSWERS), last: None }),
            said: Once::new(),
            doubt: Notify::new(),
        }
    }
}

impl Clock {
    pub fn now(&self) -> DateTime<Utc> {
        self.told().begin + self.measured()
    }

    /// Seconds by which the API server's clock is ahead of ours; 0 where they agree well enough.
    pub fn ahead(&self) -> i64 {
        let ahead = self.now() - Utc::now();
        if ahead.abs() <= TOLERATED { 0 } else { ahead.num_seconds() }
    }

    /// Why the time is not certain: one of the last answers disagrees.
    pub fn doubt(&self) -> Option<String> {
        let told = self.told();
        let odd = told.answers.iter().map(|begin| *begin - told.begin).find(|by| by.abs() > TOLERATED)?;
        Some(format!("an answer of the API server was {} seconds off", odd.num_seconds()))
    }

    /// Resolves while there is doubt.
    pub async fn doubted(&self) {
        while self.doubt().is_none() {
            self.doubt.notified().await;
        }
    }

    /// Takes in the answer to a request that was sent at `asked`. A refusal may come from any proxy on the way.
    pub fn observe(&self, status: StatusCode, answer: &HeaderMap, asked: Instant) {
        let date = answer.get(DATE).and_then(|date| DateTime::parse_from_rfc2822(date.to_str().ok()?).ok());
        if let Some(date) = date.filter(|_| status.is_success() && asked.elapsed() < PROMPT) {
            self.take(date.to_utc(), self.measured());
        }
    }

    fn take(&self, date: DateTime<Utc>, at: TimeDelta) {
        let mut told = self.told();
        if told.last.is_some_and(|last| at - last < APART) {
            return;
        }
        told.last = Some(at);
        if told.answers.len() == ANSWERS {
            told.answers.pop_front();
        }
        told.answers.push_back(date - at);
        let median = told.median();
        let agree = |begin: &DateTime<Utc>| (*begin - median).abs() <= TOLERATED;
        if (median - told.begin).abs() > TOLERATED && told.answers.iter().filter(|begin| agree(begin)).count() >= MOST {
            told.begin = median;
            told.answers.retain(agree);
        }
        drop(told);
        if self.doubt().is_some() {
            self.doubt.notify_one();
        }
        if self.ahead() != 0 {
            // The metric says how it goes on; several API servers may differ among themselves.
            self.said.call_once(|| {
                tracing::warn!(
                    seconds = self.ahead(),
                    "the API server's clock is ahead of this machine's; nodewhy uses the API server's clock"
                );
            });
        }
    }

    /// How long our measurement has run, including the time for which the node was suspended.
    fn measured(&self) -> TimeDelta {
        let measured = self.begun.elapsed() + slept().saturating_sub(self.slept);
        TimeDelta::from_std(measured).unwrap_or_default()
    }

    fn told(&self) -> MutexGuard<'_, ServerTime> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerTime {
    fn median(&self) -> DateTime<Utc> {
        let mut sorted: Vec<_> = self.answers.iter().copied().collect();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or(self.begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RIGHT: TimeDelta = TimeDelta::zero();
    const HOUR: TimeDelta = TimeDelta::hours(1);

    /// A clock that has heard these answers, one every two seconds, and how far it has moved.
    fn heard(answers: &[TimeDelta]) -> (Clock, TimeDelta) {
        let clock = Clock::default();
        let begin = clock.told().begin;
        for (n, ahead) in answers.iter().enumerate() {
            let at = TimeDelta::seconds(2 * i64::try_from(n).unwrap());
            clock.take(begin + at + *ahead, at);
        }
        let moved = clock.told().begin - begin;
        (clock, moved)
    }

    #[test]
    fn minutes_count_and_seconds_do_not() {
        let (clock, moved) = heard(&[TimeDelta::seconds(-3); 5]);
        assert_eq!((moved, clock.ahead(), clock.doubt()), (RIGHT, 0, None));
        let (clock, moved) = heard(&[TimeDelta::minutes(-10); 3]);
        assert_eq!((moved, clock.doubt()), (TimeDelta::minutes(-10), None));
        assert!((clock.now() - (Utc::now() - TimeDelta::minutes(10))).abs() < TimeDelta::seconds(2));
        assert!((clock.ahead() + 600).abs() < 2);
    }

    #[test]
    fn one_answer_that_is_an_hour_ahead_moves_nothing_and_is_doubted() {
        for odd in 0..5 {
            let mut answers = [RIGHT; 5];
            answers[odd] = HOUR;
            let (clock, moved) = heard(&answers);
            assert_eq!(moved, RIGHT, "the {odd}th");
            assert!(clock.doubt().is_some_and(|why| why.contains("3600")), "{:?}", clock.doubt());
        }
        // Two of four are no majority, and neither are two that agree among five.
        for answers in [[HOUR, RIGHT, HOUR, RIGHT].as_slice(), &[HOUR, RIGHT, -HOUR, HOUR, RIGHT]] {
            assert_eq!(heard(answers).1, RIGHT, "{answers:?}");
        }
        let (clock, _) = heard(&[HOUR, RIGHT, RIGHT, RIGHT, RIGHT, RIGHT]);
        assert_eq!(clock.doubt(), None, "five answers later it is forgotten");
    }

    #[test]
    fn the_time_moves_when_most_of_the_last_answers_agree() {
        assert_eq!(heard(&[HOUR, HOUR]).1, RIGHT);
        let (clock, moved) = heard(&[RIGHT, RIGHT, RIGHT, RIGHT, RIGHT, HOUR, HOUR, HOUR]);
        assert_eq!((moved, clock.doubt()), (HOUR, None));
    }

    #[test]
    fn answers_that_come_together_count_as_one() {
        let clock = Clock::default();
        let begin = clock.told().begin;
        (0..20).for_each(|n| clock.take(begin + HOUR, TimeDelta::milliseconds(n)));
        assert_eq!(clock.told().begin, begin);
        assert!(clock.doubt().is_some());
    }

    #[test]
    fn a_late_answer_and_a_refusal_say_nothing() {
        let headers = HeaderMap::from_iter([(DATE, "Thu, 15 Jan 2026 12:00:00 GMT".parse().unwrap())]);
        let clock = Clock::default();
        clock.observe(StatusCode::OK, &headers, Instant::now().checked_sub(Duration::from_secs(20)).unwrap());
        clock.observe(StatusCode::NOT_FOUND, &headers, Instant::now());
        assert_eq!(clock.doubt(), None);
        clock.observe(StatusCode::OK, &headers, Instant::now());
        assert!(clock.doubt().is_some());
    }
}
