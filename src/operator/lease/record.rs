//! What stands in the Lease, and whether it may be taken.

use chrono::{DateTime, Utc};
use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use std::time::{Duration, Instant};

/// The Lease as it was last seen, and since when it has been so by our own clock.
#[derive(Debug, Default)]
pub(super) struct Seen(Option<(LeaseSpec, Instant)>);

impl Seen {
    pub(super) fn look(&mut self, record: Option<&LeaseSpec>, now: Instant) {
        match (record, &self.0) {
            (None, _) => self.0 = None,
            (Some(record), Some((before, _))) if before == record => {}
            (Some(record), _) => self.0 = Some((record.clone(), now)),
        }
    }

    /// It is ours, nobody's, or its holder has not renewed it for as long as it promised to.
    pub(super) fn is_free_for(&self, identity: &str, now: Instant) -> bool {
        let Some((record, since)) = &self.0 else { return true };
        let holder = record.holder_identity.as_deref().unwrap_or_default();
        let promised = u64::try_from(record.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
        holder.is_empty()
            || holder == identity
            || now.saturating_duration_since(*since) >= Duration::from_secs(promised)
    }
}

/// The record of a holder, who renews it or takes it over.
pub(super) fn acquired(
    before: Option<&LeaseSpec>,
    identity: &str,
    duration: Duration,
    now: DateTime<Utc>,
) -> LeaseSpec {
    let mut record = before.cloned().unwrap_or_default();
    if record.holder_identity.as_deref() != Some(identity) {
        record.lease_transitions =
            Some(before.map_or(0, |b| b.lease_transitions.unwrap_or_default().saturating_add(1)));
        record.acquire_time = time(now);
        record.holder_identity = Some(identity.to_owned());
    }
    record.lease_duration_seconds = i32::try_from(duration.as_secs()).ok();
    record.renew_time = time(now);
    record
}

/// The record that leaves the Lease to anybody, as client-go writes it.
/// Source: kubernetes staging/src/k8s.io/client-go/tools/leaderelection/leaderelection.go `release` (v1.36).
pub(super) fn released(before: &LeaseSpec, now: DateTime<Utc>) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: time(now),
        renew_time: time(now),
        ..before.clone()
    }
}

fn time(now: DateTime<Utc>) -> Option<MicroTime> {
    Timestamp::from_microsecond(now.timestamp_micros()).ok().map(MicroTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn wall() -> DateTime<Utc> {
        "2026-01-15T12:00:00Z".parse().unwrap()
    }

    fn of(identity: &str) -> LeaseSpec {
        acquired(None, identity, LEASE, wall())
    }

    #[test]
    fn a_lease_that_is_renewed_is_not_taken() {
        let start = Instant::now();
        let mut seen = Seen::default();
        let mut record = of("a");
        for seconds in 0..60 {
            record = acquired(Some(&record), "a", LEASE, wall() + Duration::from_secs(seconds));
            let now = start + Duration::from_secs(seconds);
            seen.look(Some(&record), now);
            assert!(!seen.is_free_for("b", now));
        }
        assert_eq!(record.lease_transitions, Some(0));
    }

    #[test]
    fn a_lease_that_nobody_renews_is_free_after_its_duration_by_our_own_clock() {
        let start = Instant::now();
        let mut seen = Seen::default();
        // Its holder's clock is an hour behind: that must not make it look expired.
        let record = acquired(None, "a", LEASE, wall() - Duration::from_hours(1));
        seen.look(Some(&record), start);
        seen.look(Some(&record), start + Duration::from_secs(14));
        assert!(!seen.is_free_for("b", start + Duration::from_secs(14)));
        assert!(seen.is_free_for("b", start + Duration::from_secs(15)));
        assert_eq!(acquired(Some(&record), "b", LEASE, wall()).lease_transitions, Some(1));
    }

    #[test]
    fn a_lease_that_was_given_back_is_free_at_once() {
        let now = Instant::now();
        let mut seen = Seen::default();
        seen.look(Some(&of("a")), now);
        seen.look(Some(&released(&of("a"), wall())), now);
        assert!(seen.is_free_for("b", now));
    }

    #[test]
    fn a_leader_stops_before_another_may_begin() {
        assert!(super::super::DEADLINE + super::super::TIMEOUT <= super::super::DURATION);
    }
}
