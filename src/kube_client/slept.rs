//! For how long this node was suspended since it booted. `Instant` does not count that time.

use std::time::Duration;

/// Reads the monotonic clock first. An interruption between the two then makes this longer, which is the careful side.
#[cfg(target_os = "linux")]
pub fn slept() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let awake = clock_gettime(ClockId::Monotonic);
    let since_boot = clock_gettime(ClockId::Boottime);
    let duration = |time| Duration::try_from(time).unwrap_or_default();
    duration(since_boot).saturating_sub(duration(awake))
}

/// Not measured here, because only Linux runs the operator for long.
#[cfg(not(target_os = "linux"))]
pub fn slept() -> Duration {
    Duration::ZERO
}
