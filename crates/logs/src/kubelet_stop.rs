//! A kubelet that systemd stopped, and did not start again: that it ended is no failure, so no `Restart=` acts.
//!
//! Units whose kubelet requires containerd stop it with containerd. If containerd comes back by itself, nothing starts
//! the kubelet again: bottlerocket-os/bottlerocket#4721. Source: systemd v257 man/systemd.unit.xml (Requires=,
//! BindsTo=).

use crate::fact::{Fact, LogLine, Phase, RuntimeEnd, Trouble};
use crate::systemd::{REACHED, STOPPED_TARGET, is_end};
use crate::unit_name::{BEGINS, ENDS, KUBELET, RUNTIME, UnitName};
use crate::wrapping::Line;
use chrono::{DateTime, TimeDelta, Utc};

/// What begins a line about a unit that was stopped. Source: systemd v257 src/core/job.c `job_done_message_format`.
const STOPPED: &str = "Stopped ";

/// When these are reached, the machine goes down. Source: systemd v257 units/.
const SHUTDOWN: [&str; 12] = [
    "shutdown.target",
    "System Shutdown",
    "Shutdown",
    "umount.target",
    "Unmount All Filesystems",
    "final.target",
    "Late Shutdown Services",
    "Final Step",
    "reboot.target",
    "System Reboot",
    "poweroff.target",
    "System Power Off",
];

/// A stop takes 90 seconds at most, if the unit does not say otherwise. Source: systemd v257
/// man/systemd-system.conf.xml (DefaultTimeoutStopSec=).
const TOGETHER: TimeDelta = TimeDelta::seconds(95);

/// Whoever restarts a unit starts it at once. If the log ends sooner, nobody knows whether it was started.
const AGAIN: TimeDelta = TimeDelta::seconds(60);

/// A line of the kubelet may reach the journal behind that of its end.
const LATE: TimeDelta = TimeDelta::seconds(5);

/// What systemd has done with the kubelet and its runtime.
#[derive(Debug, Default)]
pub(crate) struct KubeletStop {
    /// The kubelet was stopped, and nothing started it since.
    stopped: Option<LogLine>,
    /// containerd ended last, and came up last.
    runtime_ended: Option<LogLine>,
    runtime_up: Option<LogLine>,
    /// The kubelet ended by itself.
    failed: Option<LogLine>,
    /// The machine goes down, and all of its units with it.
    shuts_down: bool,
}

impl KubeletStop {
    /// Takes in a line of systemd.
    pub(crate) fn hear(&mut self, line: &Line<'_>, seen: impl FnOnce() -> LogLine) {
        // On the console nothing has a time.
        if line.program.as_deref() != Some("systemd") {
            return;
        }
        let message: &str = &line.message;
        let of = |begin: &str| message.strip_prefix(begin).map(UnitName::of);
        if let Some(target) = of(STOPPED_TARGET) {
            if target.is_one_of(&ENDS) {
                (self.shuts_down, self.stopped) = (true, None);
            }
        } else if let Some(target) = of(REACHED) {
            if target.is_one_of(&SHUTDOWN) {
                (self.shuts_down, self.stopped) = (true, None);
            } else if target.is_one_of(&BEGINS) {
                self.begins();
            } else if target.is_one_of(&ENDS) {
                self.shuts_down = false;
            }
        } else if let Some(unit) = of(STOPPED) {
            if unit.is_one_of(&KUBELET) {
                let seen = seen();
                let failed = self.failed.take().is_some_and(|failed| is_together(&failed, &seen));
                self.stopped = (!self.shuts_down && !failed).then_some(seen);
            } else if unit.is_one_of(&RUNTIME) {
                self.runtime_ends(seen());
            }
        } else if let Some((id, how)) = message.split_once(": ").filter(|(_, how)| is_end(how)) {
            if id == RUNTIME[0] {
                self.runtime_ends(seen());
            } else if KUBELET.contains(&id) && !how.contains("status=0/SUCCESS") {
                self.failed = Some(seen());
            }
        } else if let Some(unit) = of("Started ").or_else(|| of("Starting ")).or_else(|| of("Failed to start ")) {
            if unit.is_one_of(&KUBELET) {
                self.stopped = None;
            } else if unit.is_one_of(&RUNTIME) && message.starts_with("Started ") {
                self.runtime_up = Some(seen());
            }
        }
    }

    /// Another boot.
    pub(crate) fn begins(&mut self) {
        *self = Self::default();
    }

    /// The kubelet says something: whoever started it, it runs.
    pub(crate) fn kubelet_speaks(&mut self, time: Option<DateTime<Utc>>) {
        let stopped = self.stopped.as_ref().and_then(|stopped| stopped.time);
        if stopped.zip(time).is_some_and(|(stopped, time)| time.signed_duration_since(stopped) > LATE) {
            self.stopped = None;
        }
    }

    /// The first of several lines about one end counts.
    fn runtime_ends(&mut self, seen: LogLine) {
        let is_known = self.runtime_ended.as_ref().is_some_and(|ended| is_together(ended, &seen));
        let is_back =
            self.runtime_up.as_ref().zip(self.runtime_ended.as_ref()).is_some_and(|(up, end)| up.is_after(end));
        if !is_known || is_back {
            (self.runtime_ended, self.runtime_up) = (Some(seen), None);
        }
    }

    /// That the kubelet was stopped, if the log goes on without it until its end.
    pub(crate) fn fact(self, log_ends: Option<DateTime<Utc>>) -> Option<Fact> {
        let stopped = self.stopped?;
        let went_on = log_ends?.signed_duration_since(stopped.time?) >= AGAIN;
        if !went_on {
            return None;
        }
        let runtime = self.runtime_ended.filter(|ended| is_together(ended, &stopped));
        let runtime = runtime.map(|ended| RuntimeEnd { up: self.runtime_up.filter(|up| up.is_after(&ended)), ended });
        let means = match runtime {
            Some(_) => "systemd stopped the kubelet with containerd, and did not start it again",
            None => "systemd stopped the kubelet, and did not start it again",
        };
        let fact = Fact::of_no_row("systemd", means.to_owned(), Trouble::KubeletStopped, Phase::KubeletUp, stopped);
        Some(Fact { runtime_end: runtime, ..fact })
    }
}

/// Whether both lines may be of one stop, whichever came first.
fn is_together(one: &LogLine, other: &LogLine) -> bool {
    one.time.zip(other.time).is_some_and(|(one, other)| one.signed_duration_since(other).abs() <= TOGETHER)
}
