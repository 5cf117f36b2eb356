//! Which unit of the boot failed first, what it said just before, and how far the boot had come.
//!
//! systemd prints that a job failed, and at once that all jobs failed that need it: what is printed last is the last
//! consequence. Source: systemd v257 src/core/job.c `job_finish_and_invalidate` (the message, then
//! `job_fail_dependencies`), `job_emit_done_message` (the console's status words).

use crate::fact::{BootStep, DeviceFault, Fact, LogLine, Phase, Trouble};
use crate::journey::Journey;
use crate::kubelet_stop::KubeletStop;
use crate::last_words::is_error;
use crate::quoted::shown;
use crate::selinux::is_refusal;
use crate::systemd::{CYCLE, FAILED, NOT_STARTED, REACHED, SKIPPED, UP, deleted_job, is_control_end, is_end};
use crate::unit_name::{BEGINS, ENDS, KUBELET, KUBELET_AND_RUNTIME, RUNTIME, UnitName, WAY, is_id, vendor_in};
use crate::wrapping::{Line, plain, unwrapped, without_colors};
use chrono::{DateTime, TimeDelta, Utc};
use std::borrow::Cow;
use std::collections::VecDeque;

/// One boot, as far as a file tells of it.
#[derive(Debug, Default)]
pub(crate) struct Boot {
    recent: Recent,
    /// What failed and did not come up later, in order.
    failed: Vec<Failed>,
    /// The units of drivers that failed before a kubelet was started all the same.
    drivers: Vec<Failed>,
    /// The target that was reached last.
    reached: Option<String>,
    /// The job that the boot waits for, while nothing else happens.
    awaits: Option<Awaited>,
    /// The process that failed last: the next line may say which job failed with it.
    exited: Option<Exited>,
    /// How many failed so far.
    count: u64,
    /// A kubelet was started in this boot: what fails from then on did not keep it from that.
    has_kubelet: bool,
    /// The lines that name the units of an ordering cycle, until systemd says whose job it deletes.
    cycle: Vec<LogLine>,
    /// What became of a kubelet that ran.
    stop: KubeletStop,
}

/// A process of a unit that failed.
#[derive(Debug)]
struct Exited {
    id: String,
    /// It is of a command such as that of ExecStartPre=, not of the program that the unit runs.
    is_control: bool,
    line: u64,
}

/// A unit that failed.
#[derive(Debug)]
struct Failed {
    unit: UnitName,
    /// Which failure it was, the newest of this unit.
    number: u64,
    /// What systemd did not start for it.
    needed_by: Vec<UnitName>,
    /// It came up later. What was not started for it was not started all the same.
    came_up: bool,
    /// All else that was to be started was.
    boot_ended: bool,
    /// The target that had been reached.
    reached: Option<String>,
    near: Vec<Near>,
    /// What it said itself behind its failure.
    behind: Vec<Near>,
    /// A program that panicked, whose next line says for what.
    panics: Option<String>,
    /// A command before or after its start failed, not the program itself.
    of_control: bool,
    /// systemd deleted its job to break the ordering cycle that these lines name.
    cycle: Option<Vec<LogLine>>,
    seen: LogLine,
}

/// What was said last, from its first line on: that names the error, and the others repeat it.
fn together<'n>(said: &[&'n Near]) -> impl Iterator<Item = &'n Near> {
    let is_apart =
        |pair: &[&Near]| matches!(pair, [one, other] if other.said.line.saturating_sub(one.said.line) > NEXT);
    let begin = said.windows(2).rposition(is_apart).map_or(0, |at| at + 1);
    said.iter().skip(begin).copied()
}

/// A job for which the boot waits.
#[derive(Debug)]
struct Awaited {
    unit: UnitName,
    seconds: u64,
    reached: Option<String>,
    seen: LogLine,
}

/// A line that was said just before a unit failed.
#[derive(Debug)]
struct Near {
    program: String,
    /// The unit of which systemd, or what is about to become its process, speaks.
    unit: Option<String>,
    /// It speaks of a disk, the network, the memory or SELinux: that may be behind any unit's failure.
    is_ground: bool,
    said: LogLine,
}

/// What a line says of the boot.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A kernel prints its first line.
    Begins,
    Starts(UnitName),
    Up(UnitName),
    Reached(UnitName),
    Failed(UnitName),
    Needs(UnitName),
    /// A line names units that wait for each other; whether it is the first.
    Cycle(bool),
    /// Its job was deleted, so that the others can be ordered.
    Deleted(UnitName),
    /// Its process failed: the job may fail with it, or start it again.
    Exited(String),
    /// A command of it failed that is not its main process.
    ControlExited(String),
    /// The console's hint behind a failure names the unit.
    Hint(String),
    Awaits(UnitName, u64),
}

/// Units beyond this are not kept: the first that failed is wanted.
const MOST: usize = 40;

/// Between the end of a process and the end of its job nearly nothing is printed, in lines.
const NEXT: u64 = 3;

/// What was said longer before the failure has nothing to do with it. A job fails at the latest after 90 seconds, if
/// its unit does not say otherwise. Source: systemd v257 man/systemd-system.conf.xml (DefaultTimeoutStartSec=).
const BREATH: TimeDelta = TimeDelta::seconds(120);

impl Boot {
    /// Keeps the line as it was written: whether it counts only a later one tells.
    pub(crate) fn keep(&mut self, number: u64, raw: &[u8]) {
        self.hear_behind(number, raw);
        self.recent.keep(number, raw);
    }

    /// systemd writes to the console at once, and the words of a program come there through the journal: they may
    /// stand behind its failure.
    fn hear_behind(&mut self, number: u64, raw: &[u8]) {
        if !self.failed.iter().any(|failed| failed.is_just_before(number)) {
            return;
        }
        let text = String::from_utf8_lossy(raw);
        let text = without_colors(&text);
        let line = unwrapped(&text, &mut None);
        // A journal has them in their order.
        let Some(program) = line.program.as_deref().filter(|_| line.host.is_none()) else { return };
        if event(&line).is_some() {
            return;
        }
        for failed in self.failed.iter_mut().filter(|failed| failed.is_just_before(number)) {
            if failed.unit.is_of(program) {
                let said = words(&line, number, &failed.seen.file, &mut failed.panics);
                failed.behind.extend(said);
            }
        }
    }

    /// The last lines before this one, as they were written.
    pub(crate) fn before(&self, number: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let lines = self.recent.lines.iter().filter(move |(at, _)| *at < number);
        lines.map(|(at, raw)| (*at, raw.as_slice()))
    }

    /// Takes in a line that one of [`crate::systemd::NEEDLES`] is in; whether it tells of something that does not
    /// start. `text` is the whole of it, without colors.
    pub(crate) fn hear(&mut self, line: &Line<'_>, text: &str, year: Option<i32>, seen: impl Fn() -> LogLine) -> bool {
        if is_of_user_manager(text) {
            return false;
        }
        self.stop.hear(line, &seen);
        let Some(event) = event(line) else { return false };
        let is_trouble = matches!(event, Event::Failed(_) | Event::Needs(_) | Event::Awaits(..) | Event::Deleted(_));
        if !matches!(event, Event::Awaits(..) | Event::Hint(_) | Event::Exited(_) | Event::ControlExited(_)) {
            self.awaits = None;
        }
        match event {
            // Another boot may fail as the one before did: what failed counts until something else is known.
            Event::Begins => {
                self.stop.begins();
                self.drivers.clear();
                self.reached = None;
                self.has_kubelet = false;
                self.has_ended(false);
            }
            Event::Starts(_) => {}
            Event::Up(unit) => self.is_up(&unit),
            Event::Reached(unit) => {
                if unit.is_one_of(&ENDS) {
                    self.has_ended(true);
                }
                self.has_kubelet &= !unit.is_one_of(&BEGINS);
                self.is_up(&unit);
                self.reached = Some(unit.in_words());
            }
            Event::Exited(id) => self.exits(id, false, seen().line),
            Event::ControlExited(id) => self.exits(id, true, seen().line),
            Event::Hint(id) => {
                if let Some(last) = self.newest().filter(|last| last.needed_by.is_empty()) {
                    last.unit.id.get_or_insert(id);
                }
            }
            Event::Failed(mut unit) => {
                let seen = seen();
                // The journal names the unit's id in the line before.
                let just = self.exited.take().filter(|exited| seen.line.saturating_sub(exited.line) <= NEXT);
                let mut of_control = false;
                if let Some(exited) = just {
                    let id = unit.id.get_or_insert(exited.id.clone());
                    of_control = exited.is_control && *id == exited.id;
                }
                self.fails(unit, of_control, year, seen);
            }
            Event::Needs(unit) => self.is_not_started(unit, seen),
            Event::Cycle(is_first) => {
                if is_first {
                    self.cycle.clear();
                }
                if self.cycle.len() < MOST {
                    self.cycle.push(seen());
                }
            }
            Event::Deleted(unit) => self.is_deleted(unit, seen()),
            Event::Awaits(unit, seconds) => {
                let reached = self.reached.clone();
                self.awaits = Some(Awaited { unit, seconds, reached, seen: seen() });
            }
        }
        is_trouble
    }

    /// The kubelet says something.
    pub(crate) fn kubelet_speaks(&mut self, time: Option<DateTime<Utc>>) {
        self.stop.kubelet_speaks(time);
    }

    /// Of processes that fail together the first is the reason: a command behind the end of the main process is not.
    fn exits(&mut self, id: String, is_control: bool, line: u64) {
        let before = self.exited.take().filter(|before| before.id == id && line.saturating_sub(before.line) <= NEXT);
        let is_control = before.map_or(is_control, |before| before.is_control);
        self.exited = Some(Exited { id, is_control, line });
    }

    fn fails(&mut self, unit: UnitName, of_control: bool, year: Option<i32>, seen: LogLine) {
        self.count += 1;
        if self.has_kubelet && !unit.is_one_of(&KUBELET_AND_RUNTIME) {
            return;
        }
        // It was started all the same.
        self.failed.retain(|failed| failed.cycle.is_none() || !failed.unit.is_same(&unit));
        if let Some(again) = self.failed.iter_mut().find(|failed| failed.unit.is_same(&unit)) {
            (again.number, again.came_up) = (self.count, false);
            return;
        }
        if self.failed.len() < MOST {
            let (near, panics) = self.recent.near(&unit, year, &seen);
            self.add(unit, near, seen);
            if let Some(failed) = self.failed.last_mut() {
                (failed.of_control, failed.panics) = (of_control, panics);
            }
        }
    }

    /// The unit is not started. The console says so, too, and names it by its description.
    fn is_deleted(&mut self, unit: UnitName, seen: LogLine) {
        let cycle = std::mem::take(&mut self.cycle);
        let is_known = self.failed.iter().any(|failed| failed.unit.is_same(&unit));
        if self.has_kubelet || is_known || self.failed.len() >= MOST {
            return;
        }
        self.add(unit, Vec::new(), seen);
        if let Some(deleted) = self.failed.last_mut() {
            deleted.cycle = Some(cycle);
        }
        // Nothing that fails next is needed by it.
        self.count += 1;
    }

    fn add(&mut self, unit: UnitName, near: Vec<Near>, seen: LogLine) {
        self.failed.push(Failed {
            unit,
            number: self.count,
            needed_by: Vec::new(),
            came_up: false,
            boot_ended: false,
            reached: self.reached.clone(),
            near,
            behind: Vec::new(),
            panics: None,
            of_control: false,
            cycle: None,
            seen,
        });
    }

    fn has_ended(&mut self, boot_ended: bool) {
        for failed in &mut self.failed {
            failed.boot_ended = boot_ended;
        }
    }

    /// What failed last.
    fn newest(&mut self) -> Option<&mut Failed> {
        let count = self.count;
        self.failed.iter_mut().find(|failed| failed.number == count)
    }

    /// A unit was not started, for what failed last: systemd says so at once.
    fn is_not_started(&mut self, unit: UnitName, seen: impl FnOnce() -> LogLine) {
        if self.failed.is_empty() && self.count == 0 && !self.has_kubelet {
            // What failed was printed before the log begins.
            self.add(UnitName::default(), Vec::new(), seen());
        }
        // The console of some images has what the journal has, too.
        let is_new = |newest: &Failed| !newest.needed_by.iter().any(|other| other.is_same(&unit));
        if let Some(newest) = self.newest().filter(|newest| newest.needed_by.len() < MOST && is_new(newest)) {
            newest.needed_by.push(unit);
        }
    }

    /// A unit came up. If the kubelet did, so is all that it needs.
    fn is_up(&mut self, unit: &UnitName) {
        if unit.is_one_of(&KUBELET) {
            self.has_kubelet = true;
            self.drivers.extend(self.failed.drain(..).filter(Failed::is_of_driver));
        }
        self.drivers.retain(|failed| !failed.unit.is_same(unit));
        for failed in &mut self.failed {
            failed.came_up |= failed.unit.is_same(unit);
            failed.needed_by.retain(|other| !other.is_same(unit));
        }
        self.failed.retain(|failed| !failed.came_up || !failed.needed_by.is_empty());
    }

    /// Tells the journey of this machine which step of its boot failed first.
    pub(crate) fn tell(mut self, journey: &mut Journey) {
        let stop = std::mem::take(&mut self.stop).fact(journey.ends);
        journey.facts.extend(stop);
        let drivers = self.drivers.iter().chain(self.failed.iter().filter(|failed| failed.is_of_driver()));
        let facts = &journey.facts;
        journey.drivers.extend(drivers.map(|failed| failed.fact(failed.step(Vec::new(), facts))));
        let first = self.failed.iter().position(Failed::stops_boot);
        let Some(at) = first else {
            if let Some(waits) = self.awaits.filter(|waits| waits.is_long() && !self.has_kubelet) {
                journey.facts.push(waits.fact());
            }
            return;
        };
        let (before, rest) = self.failed.split_at(at);
        let Some(failed) = rest.first() else { return };
        // A kubelet or containerd may fail for what a script of user data left undone.
        let is_late = |fact: &Fact| {
            fact.trouble == Trouble::ScriptFailed
                && fact.last.file == failed.seen.file
                && fact.first.line < failed.seen.line
        };
        if failed.unit.is_one_of(&KUBELET_AND_RUNTIME) && journey.facts.iter().any(is_late) {
            return;
        }
        let earlier = before.iter().filter(|other| other.unit.is_ground()).map(|other| other.seen.clone());
        let step = failed.step(earlier.take(2).collect(), &journey.facts);
        let is_its = |fact: &Fact| {
            failed.cycle.is_none()
                && fact.last.file == failed.seen.file
                && (fact.unknown && !failed.of_control && failed.unit.is_of(&fact.program)
                    || fact.vague && [fact.first.line, fact.last.line].contains(&failed.seen.line))
        };
        match journey.facts.iter_mut().find(|fact| is_its(fact)) {
            // A row, or the words of the program, say what that means for the machine.
            Some(fact) => fact.boot = Some(step),
            None => journey.facts.push(failed.fact(step)),
        }
    }
}

impl Failed {
    /// Whether it failed in one of the few lines before this one.
    fn is_just_before(&self, number: u64) -> bool {
        /// More is not printed while a boot stops.
        const FEW: u64 = 20;
        number.checked_sub(self.seen.line).is_some_and(|lines| (1..=FEW).contains(&lines))
    }

    /// Whether it sets up a device, and did not come up later.
    fn is_of_driver(&self) -> bool {
        self.unit.is_driver() && !self.came_up && self.cycle.is_none()
    }

    /// Whether the kubelet is not started for it: it is a part of the way there, or what needs it is, or nothing says
    /// that the boot went on to its end.
    fn stops_boot(&self) -> bool {
        let is_on_way =
            !self.came_up && self.unit.is_one_of(&WAY) || self.needed_by.iter().any(|unit| unit.is_one_of(&WAY));
        is_on_way || !self.boot_ended && self.needed_by.iter().any(|unit| !unit.is_beside())
    }

    /// What it said itself, before its failure or else behind it.
    fn own_words(&self) -> Vec<&Near> {
        let own = |near: &&Near| self.unit.is_of(&near.program) || near.unit.is_some() && near.unit == self.unit.id;
        let said: Vec<&Near> = self.near.iter().filter(own).collect();
        if said.is_empty() { self.behind.iter().collect() } else { said }
    }

    /// What a line before its failure says of the accelerator that the unit, or its own words, are about: the first
    /// such line, because later ones may follow from it.
    fn device(&self, facts: &[Fact]) -> Option<DeviceFault> {
        /// A driver is loaded at the start of a boot.
        const BOOT: TimeDelta = TimeDelta::minutes(10);
        // They need no device. What they say of one is a label, or the runtime of its containers.
        if self.unit.is_one_of(&KUBELET_AND_RUNTIME) {
            return None;
        }
        let own = self.own_words();
        // A label or a resource is no device: nvidia.com/gpu, aws.amazon.com/neuron.
        let mut texts = own.iter().map(|near| near.said.text.as_str()).filter(|text| !text.contains(".com/"));
        let vendor = vendor_in(&self.unit.in_words()).or_else(|| texts.find_map(vendor_in))?;
        let is_before = |line: &LogLine| {
            let apart = line.time.zip(self.seen.time).map(|(said, failed)| failed.signed_duration_since(said));
            line.file == self.seen.file && line.line < self.seen.line && apart.is_none_or(|apart| apart <= BOOT)
        };
        let is_reason = |fact: &&Fact| {
            fact.trouble == Trouble::DeviceFails
                && !fact.vague
                && vendor_in(&fact.first.text) == Some(vendor)
                && is_before(&fact.first)
                && !own.iter().any(|near| near.said.line == fact.first.line)
        };
        let reason = facts.iter().filter(is_reason).min_by_key(|fact| fact.first.line)?;
        Some(DeviceFault { means: reason.means.clone(), line: reason.first.clone() })
    }

    fn step(&self, earlier: Vec<LogLine>, facts: &[Fact]) -> BootStep {
        let said = self.own_words();
        let is_of_module = |near: &&Near| refuses_module(&near.said.text);
        let said = if said.is_empty() { self.near.iter().filter(|near| !is_of_module(near)).collect() } else { said };
        let is_refused = said.iter().any(|near| tells_of_refusal(&near.said.text));
        let refusal = self.near.iter().rfind(is_of_module).filter(|_| is_refused).map(|near| near.said.clone());
        let ground = self.near.iter().filter(|near| near.is_ground && !said.iter().any(|own| own.said == near.said));
        BootStep {
            unit: self.unit.in_words(),
            id: self.unit.command_id(),
            said: together(&said).take(2).chain(ground.take(1)).map(|near| near.said.clone()).collect(),
            refusal,
            device: self.device(facts),
            cycle: self.cycle.clone().unwrap_or_default(),
            needed_by: self.needed_by.iter().take(3).map(UnitName::in_words).collect(),
            reached: self.reached.clone(),
            earlier,
        }
    }

    fn fact(&self, boot: BootStep) -> Fact {
        if self.cycle.is_some() {
            let means = format!("systemd did not start {}, to break an ordering cycle", boot.unit);
            let fact = fact(means, Trouble::BootstrapFailed, boot, self.seen.clone());
            return Fact { vague: false, ..fact };
        }
        let means = match boot.needed_by.first().filter(|_| boot.unit.is_empty()) {
            Some(other) => {
                format!("{other} was not started, because a unit that it needs failed before this log begins")
            }
            None if self.of_control => {
                format!(
                    "a command that runs before or after the start of {} failed, such as its ExecStartPre=",
                    boot.unit
                )
            }
            None => format!("{} is the first step of the boot that failed", boot.unit),
        };
        let trouble = if self.unit.is_one_of(&RUNTIME) {
            Trouble::RuntimeNotUp
        } else if self.unit.is_one_of(&KUBELET) && !self.of_control {
            Trouble::KubeletRefusesConfiguration
        } else if self.unit.is_disk() {
            Trouble::DiskFails
        } else {
            Trouble::BootstrapFailed
        };
        fact(means, trouble, boot, self.seen.clone())
    }
}

impl Awaited {
    fn is_long(&self) -> bool {
        const LONG: u64 = 60;
        self.seconds >= LONG && !self.unit.is_beside()
    }

    fn fact(self) -> Fact {
        let means = format!("the boot still waits for {} where the log ends", self.unit.in_words());
        let boot = BootStep {
            unit: self.unit.in_words(),
            id: self.unit.command_id(),
            reached: self.reached,
            ..BootStep::default()
        };
        let fact = fact(means, Trouble::BootstrapFailed, boot, self.seen);
        Fact { ends: false, ..fact }
    }
}

fn fact(means: String, trouble: Trouble, boot: BootStep, seen: LogLine) -> Fact {
    Fact { boot: Some(boot), ..Fact::of_no_row("systemd", means, trouble, Phase::KubeletUp, seen) }
}

/// Whether systemd speaks for a user's session, not for the machine.
fn is_of_user_manager(text: &str) -> bool {
    let process = text.split_once("systemd[").and_then(|(_, rest)| rest.split_once(']')).map(|(process, _)| process);
    process.is_some_and(|process| process != "1") || text.contains("\"USER_UNIT\"")
}

fn event(line: &Line<'_>) -> Option<Event> {
    let message = whole(&line.message);
    let message: &str = &message;
    if line.program.as_deref().is_none_or(|program| program == "kernel") && message.starts_with("Linux version ") {
        return Some(Event::Begins);
    }
    if line.program.as_deref() == Some("systemd") {
        return of_journal(message).or_else(|| job(message));
    }
    // What the journal has of other programs is theirs; on the console lines run into each other.
    if line.host.is_some() {
        return None;
    }
    if let Some((_, rest)) = message.split_once("See 'systemctl status ") {
        return Some(Event::Hint(rest.split('\'').next()?.to_owned()));
    }
    if let Some((_, rest)) = message.split_once("start job is running for ").or_else(|| message.split_once("] Job ")) {
        return awaits(rest);
    }
    let trimmed = message.trim_start();
    if let Some(rest) = trimmed.strip_prefix("Starting ") {
        return Some(Event::Starts(UnitName::of(rest)));
    }
    job(status(message)?)
}

/// What follows the status word of a line of the console: `[FAILED] `, `[  OK  ] `.
fn status(message: &str) -> Option<&str> {
    const WORDS: [&str; 6] = ["FAILED] ", "DEPEND] ", " TIME ] ", " SKIP ] ", "  OK  ] ", " OK ] "];
    let found = WORDS.iter().find_map(|word| {
        let (before, rest) = message.split_once(word)?;
        before.ends_with('[').then(|| rest.trim_start())
    });
    // Copied from a page, the brackets are lost.
    let bare = || ["FAILED ", "DEPEND "].iter().find_map(|word| message.trim_start().strip_prefix(word));
    found.or_else(bare)
}

/// What a job ended with, or that it starts.
fn job(text: &str) -> Option<Event> {
    let behind = |begins: &[&str]| begins.iter().find_map(|begin| text.strip_prefix(begin)).map(UnitName::of);
    let needs = || behind(&[NOT_STARTED]).map(Event::Needs);
    let reached = || behind(&[REACHED]).map(Event::Reached);
    let starts = || behind(&["Starting "]).map(Event::Starts);
    let deleted = || behind(&[SKIPPED]).map(Event::Deleted);
    behind(&FAILED)
        .map(Event::Failed)
        .or_else(needs)
        .or_else(|| behind(&UP).map(Event::Up))
        .or_else(reached)
        .or_else(starts)
        .or_else(deleted)
}

/// `x.service: Failed with result 'exit-code'.`; v219 has only `x.service: main process exited, …` before the job's
/// end, or `x.service: control process exited, …`.
fn of_journal(message: &str) -> Option<Event> {
    if let Some(id) = deleted_job(message).filter(|id| is_id(id)) {
        return Some(Event::Deleted(UnitName::of(id)));
    }
    if let Some(at) = CYCLE.iter().position(|begin| message.contains(begin)) {
        return Some(Event::Cycle(at == 0));
    }
    let (id, how) = message.split_once(": ").filter(|(id, _)| is_id(id))?;
    if is_control_end(how) {
        return Some(Event::ControlExited(id.to_owned()));
    }
    is_end(how).then(|| Event::Exited(id.to_owned()))
}

/// `Wait for Network to be Configured (1min 39s / no limit)`, `systemd-networkd-wait-online.service/start running (…)`.
/// Source: systemd v257 src/core/manager.c `manager_print_jobs_in_progress`.
fn awaits(text: &str) -> Option<Event> {
    let (unit, time) = text.rsplit_once(" (")?;
    let unit = unit.strip_suffix(" running").map_or(unit, |job| job.strip_suffix("/start").unwrap_or(job));
    let (waited, _) = time.split_once(" / ")?;
    let seconds = waited.split(' ').try_fold(0_u64, |sum, part| {
        let end = part.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = part.split_at(end);
        let factor = match unit {
            "s" => 1,
            "min" => 60,
            "h" => 3600,
            _ => return None,
        };
        Some(sum.saturating_add(number.parse::<u64>().ok()?.saturating_mul(factor)))
    })?;
    Some(Event::Awaits(UnitName::of(unit), seconds))
}

/// The message without what people's tools have made of colors and of the mark of a cut.
fn whole(message: &str) -> Cow<'_, str> {
    let message = if message.contains('â') {
        ["â\u{80}¦", "â€¦", "â¦"].iter().fold(message.to_owned(), |text, mark| text.replace(mark, "…")).into()
    } else {
        Cow::Borrowed(message)
    };
    if !message.contains("[0") {
        return message;
    }
    // The escape character is lost, its codes are not: `[[0;1;31mFAILED[0m]`.
    let mut out = String::with_capacity(message.len());
    let mut rest = &*message;
    while let Some(at) = rest.find('[') {
        let (before, code) = rest.split_at(at);
        out.push_str(before);
        let end = code.get(1..).and_then(|code| code.find(|c: char| !c.is_ascii_digit() && c != ';'));
        match end {
            Some(end) if end > 0 && code.get(end + 1..).is_some_and(|code| code.starts_with('m')) => {
                rest = code.get(end + 2..).unwrap_or_default();
            }
            _ => {
                out.push('[');
                rest = code.get(1..).unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The last lines, as they were written.
#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<(u64, Vec<u8>)>,
}

impl Recent {
    fn keep(&mut self, number: u64, raw: &[u8]) {
        /// Lines of other programs that stand between the words of a unit and its end.
        const LINES: usize = 80;
        /// Of a longer line its begin is enough.
        const BYTES: usize = 1_000;
        let mut line = match self.lines.len() {
            LINES.. => self.lines.pop_front().map(|(_, line)| line).unwrap_or_default(),
            _ => Vec::new(),
        };
        line.clear();
        line.extend_from_slice(raw.get(..BYTES).unwrap_or(raw));
        self.lines.push_back((number, line));
    }

    /// What was complained of from the start of the unit until it failed, and the program that panicked last.
    fn near(&self, unit: &UnitName, year: Option<i32>, failed: &LogLine) -> (Vec<Near>, Option<String>) {
        const MOST: usize = 12;
        let mut near: VecDeque<Near> = VecDeque::new();
        let mut panics = None;
        for (number, raw) in self.lines.iter().filter(|(number, _)| *number < failed.line) {
            let text = String::from_utf8_lossy(raw);
            let text = without_colors(&text);
            let mut year = year;
            let line = unwrapped(&text, &mut year);
            if matches!(event(&line), Some(Event::Starts(other)) if other.is_same(unit)) {
                near.clear();
                panics = None;
                continue;
            }
            if !is_recent(line.time, failed.time) || event(&line).is_some() {
                continue;
            }
            near.extend(words(&line, *number, &failed.file, &mut panics));
            if near.len() > MOST {
                near.pop_front();
            }
        }
        (near.into(), panics)
    }
}

fn is_recent(said: Option<DateTime<Utc>>, failed: Option<DateTime<Utc>>) -> bool {
    said.zip(failed).is_none_or(|(said, failed)| failed.signed_duration_since(said) <= BREATH)
}

/// The line, if it complains of something, or is what a panic says: that stands in the program's line behind the place.
/// Source: rust 1.83 library/std/src/panicking.rs `default_hook`.
fn words(line: &Line<'_>, number: u64, file: &str, panics: &mut Option<String>) -> Option<Near> {
    let message = plain(&line.message);
    let is_of_panic = panics.is_some() && panics.as_deref() == line.program.as_deref();
    if is_of_panic {
        *panics = None;
    }
    if message.contains(PANICKED) && message.ends_with(':') {
        *panics = line.program.as_deref().map(str::to_owned);
        return None;
    }
    let is_ground = is_ground(&message);
    // A kernel complains of much on each boot; of a program without a name nobody knows whose words they are.
    let program = line.program.as_deref().unwrap_or("kernel");
    let is_heard = is_ground || is_of_panic || program != "kernel" && speaks_of_trouble(&message);
    if !is_heard {
        return None;
    }
    let unit = (program == "systemd").then(|| message.split_once(": ")).flatten().map(|(unit, _)| unit.to_owned());
    let unit = unit.filter(|unit| is_id(unit));
    // What systemd says of jobs and of itself is no reason.
    if program == "systemd" && unit.is_none() {
        return None;
    }
    let said = LogLine { file: file.to_owned(), line: number, time: line.time, text: shown(&message) };
    Some(Near { program: program.to_owned(), unit, is_ground, said })
}

/// What a program of Rust says of a panic, before its place.
const PANICKED: &str = "panicked at ";

/// Words of a program that ends.
pub(crate) fn speaks_of_trouble(message: &str) -> bool {
    // Also glibc's texts of EPERM and EAGAIN, iptables 1.8.4 iptables/xshared.c `xtables_lock`, and what ignition
    // v2.14.0 internal/resource/http.go says of a status.
    const WORDS: [&str; 16] = [
        PANICKED,
        "timed out",
        "timeout",
        "unable",
        "could not",
        "not permitted",
        "unavailable",
        "holding the xtables lock",
        "result: unauthorized",
        "result: forbidden",
        "refused",
        "wrong fs type",
        "read-only",
        "no space",
        "unreachable",
        "missing",
    ];
    const CALM: [&str; 5] = ["[INFO]", "[DEBUG]", "level=info", "level=debug", "DEBUG "];
    const OF_SYSTEMD: [&str; 5] = [
        "ontrol process exited",
        "/start timed out",
        "failed with result",
        "Scheduled restart job",
        "Triggering OnFailure",
    ];
    let lower = message.to_ascii_lowercase();
    let complains = is_error(message) || WORDS.iter().any(|word| lower.contains(word));
    complains && !CALM.iter().chain(&OF_SYSTEMD).any(|word| message.contains(word))
}

/// Whether the kernel says that it loads no module without a signature of a key that it knows.
/// Sources: Linux v6.12 security/lockdown/lockdown.c `lockdown_is_locked_down`, security/security.c `lockdown_reasons`,
/// kernel/module/signing.c `module_sig_check`.
fn refuses_module(message: &str) -> bool {
    message.starts_with("Lockdown: ") && message.contains("unsigned module loading is restricted")
        || message.starts_with("Loading of ") && message.ends_with(" is rejected")
}

/// What a program is told whose module is refused: EPERM, EKEYREJECTED and ENOKEY in glibc's words.
fn tells_of_refusal(message: &str) -> bool {
    ["Operation not permitted", "Key was rejected by service", "Required key not available"]
        .iter()
        .any(|text| message.contains(text))
}

/// Disks, memory, SELinux and the network, as the kernel and its tools complain of them. Sources: Linux v6.12
/// block/blk-core.c, fs/ext4/super.c, fs/xfs/xfs_message.c, mm/oom_kill.c, security/selinux/avc.c,
/// drivers/net/ethernet/amazon/ena/ena_netdev.c; glibc's texts of errno.
fn is_ground(message: &str) -> bool {
    const TEXTS: [&str; 19] = [
        "I/O error",
        "EXT4-fs error",
        "EXT4-fs warning",
        "XFS (",
        "superblock",
        "Read-only file system",
        "No space left on device",
        "Structure needs cleaning",
        "Out of memory",
        "oom-kill",
        "OOM killer",
        "Network is unreachable",
        "No route to host",
        "Temporary failure in name resolution",
        "Could not resolve",
        "DHCPDISCOVER",
        "ena: ",
        "segfault at",
        "nvme",
    ];
    // These print on each boot, too.
    const BAD: [&str; 10] =
        ["error", "fail", "corrupt", "shut", "timeout", "timed out", "no lease", "reset", "abort", "can't"];
    const ALSO_CALM: [&str; 5] = ["XFS (", "superblock", "DHCPDISCOVER", "ena: ", "nvme"];
    let lower = message.to_ascii_lowercase();
    TEXTS
        .iter()
        .filter(|text| message.contains(**text))
        .any(|text| !ALSO_CALM.contains(text) || BAD.iter().any(|word| lower.contains(word)))
        || is_refusal(message)
        || refuses_module(message)
}
