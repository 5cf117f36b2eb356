//! How far a machine came, and what stopped it.

use crate::clock::Clock;
use crate::device_plugins::DevicePlugins;
use crate::fact::{Fact, LogLine, MachineNames, Milestone, Phase, Reason, Trouble};
use crate::lease::Lease;
use crate::selinux::Refusal;
use crate::table::{CILIUM_OPERATOR, KUBELET};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that was logged of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Journey {
    pub identity: MachineNames,
    pub facts: Vec<Fact>,
    pub milestones: BTreeMap<Phase, Milestone>,
    /// When each program said last that it had come up.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub came_up: BTreeMap<String, LogLine>,
    /// The error that the file of each component's own ends with, where the table does not know it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub last_words: BTreeMap<String, LogLine>,
    /// Units that set up the driver of an accelerator and failed, whether a kubelet was started or not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drivers: Vec<Fact>,
    /// Errors of the network plugin's operator that name it and that no row of the table knows. They prove nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub operator_errors: Vec<Fact>,
    /// What SELinux refused, each once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<LogLine>,
    /// What the log says of the machine's clock.
    #[serde(skip_serializing_if = "Clock::is_empty")]
    pub(crate) clock: Clock,
    /// What systemd-networkd says of the machine's address.
    #[serde(skip_serializing_if = "Lease::is_empty")]
    pub lease: Lease,
    /// What the kubelet says of the machine's device plugins.
    #[serde(skip_serializing_if = "DevicePlugins::is_empty")]
    pub device_plugins: DevicePlugins,
    /// When each file ends.
    pub files: BTreeMap<String, Option<DateTime<Utc>>>,
    pub lines: u64,
    pub begins: Option<DateTime<Utc>>,
    pub ends: Option<DateTime<Utc>>,
}

/// After such a silence of its own file, what a program tries again and again has come to an end.
const SILENCE: TimeDelta = TimeDelta::minutes(5);

/// A kubelet that runs for so long after it ended and was started again has got over what it ended with.
const RUNS: TimeDelta = TimeDelta::seconds(30);

/// A kubelet writes more lines than these within minutes. Fewer are an excerpt, and what somebody cut out of a log shows
/// no silence.
const EXCERPT: u64 = 50;

impl Journey {
    /// The last phase that it passed.
    pub fn came_to(&self) -> Option<(Phase, &Milestone)> {
        self.milestones.iter().next_back().map(|(phase, milestone)| (*phase, milestone))
    }

    /// Whether it tells of a step, of a fault or of the end of a program.
    pub fn tells_anything(&self) -> bool {
        !self.facts.is_empty() || !self.milestones.is_empty() || !self.last_words.is_empty() || !self.drivers.is_empty()
    }

    /// Whether only an operator, which goes on to tell of instances that are gone, speaks of it: no file is its own.
    pub fn is_told_by_operator(&self) -> bool {
        self.milestones.is_empty()
            && (!self.facts.is_empty() || self.is_only_named())
            && self.facts.iter().all(|fact| fact.program == CILIUM_OPERATOR)
    }

    /// Whether nothing is known of it but errors of an operator that name it.
    pub fn is_only_named(&self) -> bool {
        self.begins.is_none() && !self.tells_anything() && !self.operator_errors.is_empty()
    }

    /// What still stops it, the root of it first: what says most, what gave up before what tries again, the earliest
    /// phase that is not passed.
    pub fn open(&self) -> Vec<&Fact> {
        let mut open: Vec<&Fact> = self.facts.iter().filter(|fact| self.is_open(fact)).collect();
        open.sort_by_key(|fact| fact.rank());
        open
    }

    /// Whether anything still stops it.
    pub fn complains(&self) -> bool {
        self.facts.iter().any(|fact| self.is_open(fact))
    }

    /// A fault is over when the machine got past what it blocks, or when nobody complains any more, and what comes only
    /// now and then was none.
    fn is_open(&self, fact: &Fact) -> bool {
        if fact.trouble == Trouble::InterfaceLimit {
            return false;
        }
        let ends_again = self.kubelet_ends_again();
        let passed = self.milestones.range(fact.blocks..);
        let mut past =
            passed.filter(|(phase, _)| !(ends_again && **phase == Phase::KubeletUp)).map(|(_, milestone)| milestone);
        let is_up = self.came_up.get(&fact.program).is_some_and(|up| up.is_after(&fact.last));
        let came_up = is_up && (fact.ends || fact.at_start);
        // A Node is Ready whether its devices work or not, and whether the cloud controller has taken it in.
        let is_beside_ready = match fact.trouble {
            Trouble::DeviceFails => fact.ends,
            trouble => trouble == Trouble::CloudControllerFails,
        };
        let got_past = !is_beside_ready && past.clone().any(|milestone| milestone.last.is_after(&fact.last));
        // What it had passed before, a single complaint does not undo: pods of users fail on healthy machines too.
        let was_past = past.any(|milestone| fact.first.is_after(&milestone.first));
        let is_slight = was_past && !fact.ends && (fact.vague || !fact.lasts());
        let ends = self.files.get(&fact.last.file).copied().flatten();
        let is_excerpt = fact.program == KUBELET && self.lines < EXCERPT;
        let fell_silent = !fact.ends
            && !is_excerpt
            && ends.zip(fact.last.time).is_some_and(|(ends, last)| ends.signed_duration_since(last) > SILENCE);
        !got_past && !came_up && !fell_silent && !is_slight && !fact.is_now_and_then()
    }

    /// Whether nothing follows from this one that does not follow from the other, which was read at another time: the
    /// same still stops the machine, and it came as far.
    pub fn tells_no_more_than(&self, other: &Self) -> bool {
        fn told(fact: &Fact) -> (&str, &str, Trouble, Option<Reason>, bool) {
            (&fact.program, &fact.means, fact.trouble, fact.reason, fact.lasts())
        }
        let phase = |journey: &Self| journey.came_to().map(|(phase, _)| phase);
        self.identity == other.identity
            && phase(self) == phase(other)
            && self.open().into_iter().map(told).eq(other.open().into_iter().map(told))
            && self.operator_errors.iter().map(told).eq(other.operator_errors.iter().map(told))
            && self.device_plugins.all_lost().eq(other.device_plugins.all_lost())
    }

    /// Whether the kubelet ends each time that it is started: then its start is no proof of anything.
    fn kubelet_ends_again(&self) -> bool {
        let Some(started) = self.milestones.get(&Phase::KubeletUp) else { return false };
        let ran = self.ends.zip(started.last.time).map(|(ends, started)| ends.signed_duration_since(started));
        let is_exit = |fact: &&Fact| fact.program == "kubelet" && fact.ends && fact.blocks <= Phase::Registered;
        self.facts.iter().filter(is_exit).any(|exit| {
            exit.last.is_after(&started.first)
                && (exit.last.is_after(&started.last) || ran.is_some_and(|ran| ran <= RUNS))
        })
    }

    /// Something was said at that time.
    pub(crate) fn heard_at(&mut self, time: Option<DateTime<Utc>>) {
        self.begins = [self.begins, time].into_iter().flatten().min();
        self.ends = self.ends.max(time);
    }

    /// Keeps what SELinux refused, where it was said last.
    pub(crate) fn keep_refusal(&mut self, seen: LogLine) {
        /// A machine on which more is refused tells enough.
        const MOST: usize = 40;
        let Some(refusal) = Refusal::of(&seen) else { return };
        let is_same = |own: &LogLine| Refusal::of(own).is_some_and(|own| own.is_same(&refusal));
        if let Some(at) = self.refusals.iter().position(is_same) {
            self.refusals.remove(at);
        }
        if self.refusals.len() < MOST {
            self.refusals.push(seen);
        }
    }

    /// Takes in what another file says of the same machine.
    pub(crate) fn extend(&mut self, other: Self) {
        self.identity.extend(&other.identity);
        for mut fact in other.facts {
            match self.facts.iter_mut().find(|own| own.is_same(&fact)) {
                // The same lines stand in the journal, in /var/log/messages and on the console.
                Some(own) => {
                    let (says_more, says_less) = (fact.says_why_before(own), own.says_why_before(&fact));
                    own.learn(&mut fact);
                    own.count = own.count.max(fact.count);
                    let is_newer = fact.last.is_after(&own.last) && fact.last.time.is_some();
                    if says_more || is_newer && !says_less {
                        own.last = fact.last;
                    }
                    if own.first.is_after(&fact.first) && fact.first.time.is_some() {
                        own.first = fact.first;
                    }
                }
                None => self.facts.push(fact),
            }
        }
        for (phase, milestone) in other.milestones {
            match self.milestones.get_mut(&phase) {
                Some(own) => {
                    if milestone.last.time > own.last.time {
                        own.last = milestone.last;
                    }
                    if milestone.first.time.is_some() && milestone.first.time < own.first.time {
                        own.first = milestone.first;
                    }
                }
                None => drop(self.milestones.insert(phase, milestone)),
            }
        }
        for (program, up) in other.came_up {
            let newest = self.came_up.entry(program).or_insert_with(|| up.clone());
            if up.time > newest.time {
                *newest = up;
            }
        }
        for (program, said) in other.last_words {
            let last = self.last_words.entry(program).or_insert_with(|| said.clone());
            if said.time > last.time {
                *last = said;
            }
        }
        for driver in other.drivers {
            if !self.drivers.iter().any(|own| own.is_same(&driver)) {
                self.drivers.push(driver);
            }
        }
        for error in other.operator_errors {
            match self.operator_errors.iter_mut().find(|own| own.is_same(&error)) {
                Some(own) => {
                    // The same log may have been read twice.
                    own.count = own.count.max(error.count);
                    if error.last.is_after(&own.last) {
                        own.last = error.last;
                    }
                }
                None => self.operator_errors.push(error),
            }
        }
        for refusal in other.refusals {
            self.keep_refusal(refusal);
        }
        self.clock.extend(other.clock);
        self.lease.extend(other.lease);
        self.device_plugins.extend(other.device_plugins);
        for (file, ends) in other.files {
            let own = self.files.entry(file).or_default();
            *own = ends.max(*own);
        }
        self.lines += other.lines;
        self.begins = [self.begins, other.begins].into_iter().flatten().min();
        self.ends = self.ends.max(other.ends);
    }
}
