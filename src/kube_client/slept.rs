//! For how long the machine was suspended since it booted. `Instant` stands still meanwhile, and other machines go on.

use std::time::Duration;

/// The monotonic clock is read first: an interruption between the two makes this longer, and what rests on it more
/// careful.
#[cfg(target_os = "linux")]
pub fn slept() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let awake = clock_gettime(ClockId::Monotonic);
    let since_boot = clock_gettime(ClockId::Boottime);
    let duration = |time| Duration::try_from(time).unwrap_or_default();
    duration(since_boot).saturating_sub(duration(awake))
}

/// Not known here: only Linux runs the operator for long.
#[cfg(not(target_os = "linux"))]
pub fn slept() -> Duration {
    Duration::ZERO
}
