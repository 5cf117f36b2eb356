//! The time of a dump, as far as it is known.
//!
//! Kubernetes prints no time. `nodewhy collect` does. Otherwise the last reports of kubelets bound the time. Without
//! them, the time of the file and the newest time in it are two guesses, and nodewhy judges both.

use chrono::{DateTime, TimeDelta, Utc};
use engine::api::judged::JudgedBy;

/// Times that hint at the time of a dump.
#[derive(Debug, Clone, Copy, Default)]
pub struct DumpTimes {
    /// The time that `nodewhy collect` wrote into it.
    pub collected: Option<DateTime<Utc>>,
    /// The newest time that any object carries.
    pub newest: Option<DateTime<Utc>>,
    /// When a kubelet last reported.
    pub heartbeat: Option<DateTime<Utc>>,
    /// When the newest of its files was written. The present for standard input.
    pub written: Option<DateTime<Utc>>,
}

/// Maximum time between two reports of a kubelet.
/// Source: kubernetes v1.36.3 pkg/kubelet/apis/config/v1beta1/defaults.go `NodeStatusReportFrequency`.
const REPORTS: TimeDelta = TimeDelta::minutes(5);
/// A file written longer than this after its newest content is a copy. Its own time means nothing.
const PLAUSIBLE: TimeDelta = TimeDelta::hours(24);

/// A time and its source.
pub type TimeAndSource = (DateTime<Utc>, JudgedBy);

/// The time to judge at, and the other equally plausible one. `None` if there is no time at all.
pub fn candidates(known: DumpTimes) -> Option<(TimeAndSource, Option<TimeAndSource>)> {
    let DumpTimes { collected, newest, heartbeat, written } = known;
    if let Some(collected) = collected {
        // A file beside it may have been made later.
        return Some(((newest.map_or(collected, |newest| newest.max(collected)), JudgedBy::Collected), None));
    }
    let Some(newest) = newest else { return written.map(|at| ((at, JudgedBy::Written), None)) };
    let newest_too = (newest, JudgedBy::Newest);
    // Clocks differ by seconds; a file that is older than what is in it was unpacked or checked out.
    let Some(written) = written.filter(|at| *at > newest) else { return Some((newest_too, None)) };
    let later = (written, JudgedBy::Written);
    let reported = heartbeat.is_some_and(|at| newest - at <= REPORTS);
    Some(match (reported, written - newest) {
        (true, since) if since <= REPORTS * 2 => (later, None),
        (true, _) => (newest_too, None),
        (false, since) if since <= PLAUSIBLE => (later, Some(newest_too)),
        (false, _) => (newest_too, Some(later)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes)
    }

    #[test]
    fn what_collect_wrote_counts() {
        let known =
            DumpTimes { collected: Some(at(60)), newest: Some(at(10)), heartbeat: None, written: Some(at(9_000)) };
        assert_eq!(candidates(known), Some(((at(60), JudgedBy::Collected), None)));
    }

    #[test]
    fn kubelets_that_report_bound_the_time() {
        let known = |written| DumpTimes {
            collected: None,
            newest: Some(at(100)),
            heartbeat: Some(at(98)),
            written: Some(at(written)),
        };
        assert_eq!(candidates(known(104)), Some(((at(104), JudgedBy::Written), None)), "just written");
        assert_eq!(candidates(known(200)), Some(((at(100), JudgedBy::Newest), None)), "a copy of an older dump");
        assert_eq!(
            candidates(known(50)),
            Some(((at(100), JudgedBy::Newest), None)),
            "checked out with the time of its commit"
        );
    }

    #[test]
    fn without_reports_both_times_are_judged() {
        let known =
            |written| DumpTimes { collected: None, newest: Some(at(100)), heartbeat: None, written: Some(at(written)) };
        let (newest, later) = ((at(100), JudgedBy::Newest), |minutes| (at(minutes), JudgedBy::Written));
        assert_eq!(candidates(known(120)), Some((later(120), Some(newest))));
        assert_eq!(candidates(known(100_000)), Some((newest, Some(later(100_000)))));
        assert_eq!(candidates(known(99)), Some((newest, None)));
        let old_report = DumpTimes { heartbeat: Some(at(10)), ..known(120) };
        assert_eq!(candidates(old_report), Some((later(120), Some(newest))), "the kubelets died long before");
    }

    #[test]
    fn a_dump_without_any_time_was_made_when_it_was_written() {
        assert_eq!(
            candidates(DumpTimes { written: Some(at(7)), ..DumpTimes::default() }),
            Some(((at(7), JudgedBy::Written), None))
        );
        assert_eq!(candidates(DumpTimes::default()), None);
    }
}
