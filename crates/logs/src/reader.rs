//! From files to journeys: every line once, in bounded memory.

use crate::boot::Boot;
use crate::denial::{self, denied};
use crate::early::Early;
use crate::fact::{Fact, LogLine, MachineNames, Milestone, Oops, Phase, Reason, ScriptEnd, Trouble};
use crate::framing::{RawLines, Utf16};
use crate::head::{console, is_instance, is_one_value, year_in};
use crate::journey::Journey;
use crate::last_words::{LastWords, complains, is_fatal};
use crate::machines::{Folders, Machines, Nearest, OfMachine};
use crate::oops::oops;
use crate::quoted::{named as quoted, of_denial, shown};
use crate::repeated;
use crate::script_end::script_end;
use crate::selinux::{audited_at, is_refusal};
use crate::table::{
    CILIUM_OPERATOR, KARPENTER, KARPENTERS_ERROR, KUBELET, Row, TABLE, Understood, is_about_others, program_in,
    program_of,
};
use crate::traceback::{self, Traceback};
use crate::wrapped::{Said, is_only_code, last_error};
use crate::wrapping::{Line, PANIC, compact, klog_level, plain, unwrapped, without_colors};
use chrono::{DateTime, Datelike, Utc};
use readers::source_text::mask;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Read};

/// What is read of untrusted files.
#[derive(Debug, Clone, Copy)]
pub struct FileLimits {
    /// Bytes of a line.
    pub line: usize,
    /// Machines and things of which a file speaks.
    pub subjects: usize,
    /// Bytes of a file that is one value, such as a console in base64.
    pub value: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { line: 64 << 10, subjects: 10_000, value: 4 << 20 }
    }
}

/// The object that a line is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum LineOwner {
    /// The machine's that the file is of.
    Here,
    Host(String),
    Instance(String),
    Claim(String),
    Class(String),
    Role(String),
    Pod(String),
    Pool(String),
    /// The component's that speaks of itself, by its pod where that is known.
    Component(String),
}

/// What is known of a container's log before its first line.
#[derive(Debug, Clone, Copy)]
pub struct ContainerLog<'c> {
    pub pod: &'c str,
    /// As [`crate::table::program_of`] names it: only its lines are looked for. Of one that it does not know only what
    /// it ends with is kept.
    pub program: Option<&'c str>,
    /// When it was read, where the container still runs: it has been silent from its last line until then.
    pub runs_at: Option<DateTime<Utc>>,
}

/// What reading a file gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A text; so many of its lines the table knows.
    Text { lines: u64, known: u64 },
    /// No text: its name says what it may be, and nothing in it is a log.
    Binary,
}

/// What the begin of a file tells of all of it.
struct Begin<'b> {
    year: Option<i32>,
    /// The pod whose log its first line asks for.
    pod: Option<&'b str>,
    identity: MachineNames,
}

/// Reads files, and says which machines they are of.
#[derive(Debug, Default)]
pub struct LogReader {
    limits: FileLimits,
    /// The pods that a file may be named after, and whether each speaks of the machine that it runs on.
    pods: BTreeMap<String, bool>,
    /// What each file says of each machine.
    read: Vec<(String, LineOwner, Journey)>,
}

impl LogReader {
    pub fn new(limits: FileLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Takes a file that is named after one of these pods for its log: of an agent, which speaks of the machine that it
    /// runs on, or of another program, which may speak of all of them.
    #[must_use]
    pub fn of_pods(self, pods: BTreeMap<String, bool>) -> Self {
        Self { pods, ..self }
    }

    /// Reads a file to its end. `written` tells the year of lines that name none. What was read before an error
    /// counts.
    pub fn file(&mut self, name: &str, mut from: impl Read, written: Option<DateTime<Utc>>) -> io::Result<FileKind> {
        let mut mark = Vec::new();
        from.by_ref().take(2).read_to_end(&mut mark)?;
        match Utf16::behind(&mark, from) {
            Ok(text) => self.text(name, text, written),
            Err(from) => self.text(name, Cursor::new(mark).chain(from), written),
        }
    }

    fn text(&mut self, name: &str, mut from: impl Read, written: Option<DateTime<Utc>>) -> io::Result<FileKind> {
        /// Enough to tell what a file is, in bytes.
        const HEAD: u64 = 8 << 10;
        /// Enough to tell the year of a journal that begins with the kernel's lines, in bytes: syslog writes no year.
        const DATED: u64 = 256 << 10;
        let mut head = Vec::new();
        from.by_ref().take(HEAD).read_to_end(&mut head)?;
        if head.contains(&0) {
            return Ok(FileKind::Binary);
        }
        let mut year = year_in(&head);
        let mut is_whole = head.len() as u64 != HEAD;
        // A copy of a file is younger than what it tells, so the file's own time is the last resort.
        if year.is_none() && !is_whole {
            is_whole = from.by_ref().take(DATED).read_to_end(&mut head)? as u64 != DATED;
            year = year_in(&head);
        }
        let year = year.or(written.map(|written| written.year()));
        let rest = (!is_whole).then_some(from);
        let asked = pod_asked_for(&head, &self.pods);
        let begin = Begin { year, pod: asked.as_deref(), identity: MachineNames::default() };
        let mut whole = Cursor::new(head);
        if !is_one_value(whole.get_ref()) {
            return match rest {
                Some(rest) => self.lines(name, whole.chain(rest), begin),
                None => self.lines(name, whole, begin),
            };
        }
        if let Some(rest) = rest {
            rest.take(self.limits.value).read_to_end(whole.get_mut())?;
        }
        let (text, identity) =
            console(whole.get_ref()).unwrap_or_else(|| (whole.into_inner(), MachineNames::default()));
        self.lines(name, Cursor::new(text), Begin { identity, ..begin })
    }

    /// Reads what a container has written: each line is its pod's, or of what Karpenter speaks of in it.
    pub fn container(&mut self, name: &str, from: impl Read, of: ContainerLog<'_>) -> io::Result<FileKind> {
        self.read(OneFile { of: Some(of), ..OneFile::new(name, None, self.limits.subjects) }, from)
    }

    fn lines(&mut self, name: &str, from: impl Read, begin: Begin<'_>) -> io::Result<FileKind> {
        let mut file = OneFile::new(name, begin.year, self.limits.subjects);
        let on_machine = pod_on_machine(name);
        let pod = on_machine.or_else(|| pod_in(name, &self.pods)).or(begin.pod);
        if let Some(pod) = pod {
            let program = program_of(pod);
            // What a user's own pod complains of is no trouble of the machine.
            if program.is_none() && self.pods.get(pod) != Some(&true) {
                return Ok(FileKind::Text { lines: 0, known: 0 });
            }
            file.of = Some(ContainerLog { pod, program, runs_at: None });
            file.is_here = on_machine.is_some() || self.pods.get(pod) == Some(&false);
        }
        let here = file.subjects.entry(LineOwner::Here).or_default();
        here.identity = begin.identity;
        here.identity.instances.extend(instance_in(name));
        here.identity.pods.extend(on_machine.filter(|pod| self.pods.get(*pod) == Some(&true)).map(str::to_owned));
        self.read(file, from)
    }

    fn read(&mut self, mut file: OneFile<'_>, from: impl Read) -> io::Result<FileKind> {
        let mut lines = RawLines::new(from, self.limits.line);
        let failed = loop {
            match lines.next() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
            let number = lines.number;
            file.line(number, lines.line());
        };
        file.end(lines.number);
        let (number, known) = (lines.number, file.known);
        self.read.extend(file.finish(number));
        failed.map_or(Ok(FileKind::Text { lines: number, known }), Err)
    }

    /// What the files say, all of them of one machine, whatever it calls itself: an image's name, then its own.
    pub fn of_one_machine(self) -> Journey {
        let own = self.read.into_iter().filter(|(_, whose, _)| matches!(whose, LineOwner::Here | LineOwner::Host(_)));
        let journeys = own.map(|(_, _, journey)| journey);
        let all = journeys.reduce(|mut all, journey| {
            let lines = all.lines.max(journey.lines);
            all.extend(journey);
            all.lines = lines;
            all
        });
        let mut all = all.unwrap_or_default();
        settle(&mut all);
        all
    }

    /// The machines and NodeClaims that the files are of, each with all that they say of it.
    pub fn journeys(self) -> Vec<Journey> {
        // A machine's file that names a pod names no machine.
        let is_nameless = |whose: &LineOwner, identity: &MachineNames| {
            identity.is_empty() || *whose == LineOwner::Here && identity.is_no_machine()
        };
        let (nameless, named): (Vec<_>, Vec<_>) =
            self.read.into_iter().partition(|(_, whose, journey)| is_nameless(whose, &journey.identity));
        let mut machines = Machines::default();
        for (file, _, journey) in named {
            machines.add(file, journey);
        }
        let mut journeys = machines.all();
        name_by_tags(&mut journeys);
        // What names no machine is of the one whose files stand nearest.
        let nearest = Nearest::of(&journeys);
        let mut unclaimed: Option<OfMachine> = None;
        for (file, _, journey) in nameless {
            let own = nearest.to(&file).and_then(|at| journeys.get_mut(at)).map(|(_, known)| known);
            match (own, &mut unclaimed) {
                (Some(own), _) | (None, Some((_, own))) => own.extend(journey),
                (None, none) => *none = Some((vec![file], journey)),
            }
        }
        let all = journeys.into_iter().chain(unclaimed).map(|(_, mut journey)| {
            settle(&mut journey);
            journey
        });
        // A file of something else, and one that speaks of others only, tells of no machine.
        all.filter(|journey| !journey.identity.is_empty() || journey.tells_anything()).collect()
    }
}

/// What only all files of a machine together tell.
fn settle(journey: &mut Journey) {
    journey.facts.extend(journey.clock.fact());
    // A lost lease counts if nothing else stops the machine and its Node was never there: one that ends gives it back.
    let has_joined = journey.milestones.range(Phase::Registered..).next().is_some();
    if !has_joined && !journey.complains() {
        journey.facts.extend(journey.lease.fact());
    }
}

/// A bundle names its instance in a file of its own, and its host in every other: a file that says nothing but an id
/// is of the machine whose files stand nearest, where that is one and no other such file stands as near.
/// Source: aws/eks-node-monitoring-agent pkg/log_collector/collect/instance.go (`system/instance-id.txt`).
fn name_by_tags(journeys: &mut Vec<OfMachine>) {
    let is_tag = |journey: &Journey| {
        journey.identity.hosts.is_empty()
            && journey.identity.instances.len() == 1
            && journey.lines <= 1
            && journey.facts.is_empty()
            && journey.milestones.is_empty()
    };
    let is_unnamed = |journey: &Journey| journey.identity.instances.is_empty() && !journey.identity.hosts.is_empty();
    let (tags, mut machines): (Vec<_>, Vec<_>) =
        std::mem::take(journeys).into_iter().partition(|(_, journey)| is_tag(journey));
    let mut unnamed = Folders::default();
    for (at, (files, _)) in machines.iter().enumerate().filter(|(_, (_, own))| is_unnamed(own)) {
        unnamed.add(at, files);
    }
    let mut tagged = Folders::default();
    for (at, (files, _)) in tags.iter().enumerate() {
        tagged.add(at, files);
    }
    let mut left = Vec::new();
    for (at, (files, tag)) in tags.into_iter().enumerate() {
        if let Some((machine, shared)) = unnamed.nearest(&files)
            && let Some((own_files, own)) = machines.get_mut(machine)
            && tagged.only(own_files, shared) == Some(at)
        {
            unnamed.remove(machine, own_files);
            own.extend(tag);
        } else {
            // One that is nobody's names its machine all the same.
            left.push((files, tag));
        }
    }
    machines.append(&mut left);
    *journeys = machines;
}

/// One file while it is read.
struct OneFile<'f> {
    name: &'f str,
    of: Option<ContainerLog<'f>>,
    /// LineOwner lines those are that name no program.
    program: Option<&'static str>,
    /// A container's lines are of the machine whose files stand nearest, not of its pod.
    is_here: bool,
    year: Option<i32>,
    subjects: BTreeMap<LineOwner, Journey>,
    most: usize,
    known: u64,
    last_words: LastWords,
    /// The boot of which a machine's own file tells.
    boot: Boot,
    /// What a program that no table knows says until the file ends.
    repeated: Option<Fact>,
    /// Whether user data may have run in that boot.
    early: Early,
    /// The process that ended last as another program than the kubelet, in a file whose lines name none.
    ended: Option<u32>,
    /// Of a component that runs on the machine: its last line that speaks of an error, with number and time.
    last_error: Option<Said>,
    /// The one before that.
    error_before: Option<Said>,
    /// The panic that is being told, from this line on, and the functions in which it came to it.
    panic: Option<(u64, Vec<String>)>,
    /// The trace of Python's that is being told, and of whom.
    traceback: Option<(LineOwner, Traceback)>,
    /// The calls that AWS denied and whose role a line names.
    denials: Vec<Denied>,
}

/// A call that AWS denied, and who made it.
#[derive(Debug, PartialEq, Eq)]
struct Denied {
    of: LineOwner,
    call: String,
    /// The role, and the session where that is an instance's.
    caller: BTreeMap<&'static str, String>,
}

impl<'f> OneFile<'f> {
    fn new(name: &'f str, year: Option<i32>, most: usize) -> Self {
        Self {
            name,
            of: None,
            program: program_in(name),
            is_here: false,
            year,
            subjects: BTreeMap::new(),
            most,
            known: 0,
            last_words: LastWords::default(),
            boot: Boot::default(),
            repeated: None,
            early: Early::default(),
            ended: None,
            last_error: None,
            error_before: None,
            panic: None,
            traceback: None,
            denials: Vec::new(),
        }
    }

    /// Keeps who makes a call that AWS denies.
    fn keep_denial(&mut self, of: &LineOwner, message: &str) {
        /// A program that makes more calls than these, all of them denied, is told of all the same.
        const MOST: usize = 40;
        if self.denials.len() >= MOST || !message.contains(denial::NEEDLE) {
            return;
        }
        let mut caller: BTreeMap<_, _> = denied(message, Some(Reason::AccessDenied)).collect();
        let Some(call) = caller.remove("call").filter(|_| caller.contains_key("role")) else { return };
        let denial = Denied { of: of.clone(), call, caller };
        if !self.denials.contains(&denial) {
            self.denials.push(denial);
        }
    }

    /// A program may tell of a denied call twice: once with the role, once that it ends for it. Where several roles are
    /// denied the same call, nothing says which of them a line is about.
    fn name_callers(&mut self) {
        for Denied { of, call, caller } in &self.denials {
            let is_other = |other: &Denied| other.of == *of && other.call == *call && other.caller != *caller;
            if self.denials.iter().any(is_other) {
                continue;
            }
            let facts = self.subjects.get_mut(of).into_iter().flat_map(|journey| &mut journey.facts);
            let is_its = |fact: &&mut Fact| {
                fact.trouble == Trouble::AwsRefuses
                    && !fact.names.contains_key("role")
                    && fact.names.get("call") == Some(call)
            };
            for fact in facts.filter(is_its) {
                fact.names.extend(caller.iter().map(|(name, value)| ((*name).to_owned(), of_denial(name, value))));
            }
        }
    }

    /// A panic says what, and its first functions say in what.
    fn trace(&mut self, number: u64, raw: &[u8]) {
        const ENOUGH: usize = 3;
        let begins = raw.windows(PANIC.len()).any(|part| part == PANIC.as_bytes());
        if !begins && self.panic.is_none() {
            return;
        }
        let Ok(text) = str::from_utf8(raw) else { return };
        let line = unwrapped(text, &mut self.year);
        if line.message.starts_with(PANIC) {
            self.panic = Some((number, Vec::new()));
            return;
        }
        let Some((_, frames)) = &mut self.panic else { return };
        let begun = frames.len();
        frames.extend(frame(&line.message));
        let is_part = ["[", "goroutine ", "panic("].iter().any(|part| line.message.starts_with(part));
        let is_between = frames.len() > begun || line.message.is_empty() || is_part || line.message.contains(".go:");
        if !is_between || frames.len() == ENOUGH {
            self.end_panic();
        }
    }

    /// The last error of a trace is the reason of the line in front of it.
    fn hear_traceback(&mut self, number: u64, raw: &[u8]) {
        let Some((owner, mut traceback)) = self.traceback.take() else { return };
        let text = String::from_utf8_lossy(raw);
        let line = unwrapped(&text, &mut self.year);
        let facts = self.subjects.get_mut(&owner).map(|journey| &mut journey.facts).into_iter().flatten();
        if let Some(error) = traceback::error(&line.message) {
            let told = LogLine { file: self.name.to_owned(), line: number, time: line.time, text: shown(error) };
            for fact in facts.filter(|fact| fact.means == traceback.means) {
                fact.cause = Some(told.clone());
            }
        }
        self.traceback = traceback.goes_on(&line).then_some((owner, traceback));
    }

    fn end_panic(&mut self) {
        let Some((number, frames)) = self.panic.take().filter(|(_, frames)| !frames.is_empty()) else { return };
        let told = format!(" (in {})", frames.join(", of "));
        let facts = self.subjects.values_mut().flat_map(|journey| &mut journey.facts);
        for fact in facts.filter(|fact| fact.unknown) {
            for line in [&mut fact.first, &mut fact.last].into_iter().filter(|line| line.line == number) {
                line.text.push_str(&told);
            }
        }
        if let Some(said) = self.last_error.as_mut().filter(|said| said.line == number) {
            said.message.push_str(&told);
        }
    }

    /// The program that alone writes the file, beside the machine or in a container of it: one that the table does not
    /// know goes by its pod's name.
    fn component(&self) -> Option<&'f str> {
        let of = self.of.and_then(|of| match of.program {
            Some(program) => TABLE.program(program),
            None => Some(of.pod),
        });
        of.or(self.program).filter(|program| !is_about_others(program))
    }

    /// Nobody knows what its lines mean.
    fn is_of_unknown(&self) -> bool {
        self.of.is_some_and(|of| of.program.is_none())
    }

    fn keep_error(&mut self, number: u64, raw: &[u8]) {
        let Ok(text) = str::from_utf8(raw) else { return };
        if self.component().is_none() || !complains(text) {
            return;
        }
        let text = without_colors(text);
        let line = unwrapped(&text, &mut self.year);
        if complains(&line.message) {
            let said = Said { line: number, time: line.time, message: line.message.into_owned() };
            self.error_before = self.last_error.replace(said);
        }
    }

    /// What the program said before this line, with which it gave up.
    fn cause_of(&self, number: u64, line: &Line<'_>) -> Option<LogLine> {
        let kept = [&self.last_error, &self.error_before].into_iter().flatten().find(|said| said.line < number);
        let own = match line.program.as_deref() {
            Some(program) if self.component().is_none() => last_error(self.boot.before(number), program, self.year),
            _ => kept.cloned(),
        };
        own?.behind(number, line.time, self.name)
    }

    /// What a container's file ends with is what it ended with: where no row knows it, it is better than nothing.
    fn end(&mut self, lines: u64) {
        /// What comes after an error while a program ends.
        const FEW: u64 = 20;
        self.end_panic();
        if self.of.is_none() && self.program.is_none() {
            self.repeated = repeated::error(self.boot.before(u64::MAX), self.name, self.year);
            self.known += u64::from(self.repeated.is_some());
        }
        let Some(last) = self.last_error.take() else { return };
        // Whoever runs a program knows no more of its end than the code.
        let before =
            self.error_before.take().filter(|before| is_only_code(&last.message) && last.line - before.line <= FEW);
        let Said { line: number, time, message } = before.unwrap_or(last);
        if self.of.is_some_and(|of| of.runs_at.is_some()) {
            return;
        }
        // What Go says of a panic may go on for pages.
        let is_last = lines - number <= FEW || is_fatal(&message);
        let Some(program) = self.component().filter(|_| is_last) else { return };
        let message = plain(&message);
        if !self.is_of_unknown() && TABLE.read_line(Some(program), &message).is_some() {
            return;
        }
        let said = LogLine { file: self.name.to_owned(), line: number, time, text: shown(&message) };
        let whose = match self.of {
            Some(of) if !self.is_here => LineOwner::Pod(of.pod.to_owned()),
            _ => LineOwner::Here,
        };
        self.known += 1;
        self.subjects.entry(whose).or_default().last_words.insert(program.to_owned(), said);
    }

    fn line(&mut self, number: u64, raw: &[u8]) {
        let tight = compact(raw);
        let raw = tight.as_deref().unwrap_or(raw);
        let is_first = number == 1;
        let is_of_machine = self.of.is_none() && self.program.is_none();
        if is_of_machine {
            self.boot.keep(number, raw);
        }
        let fits = TABLE.may_fit(raw);
        if fits || self.panic.is_some() {
            self.trace(number, raw);
        }
        self.keep_error(number, raw);
        self.hear_traceback(number, raw);
        if self.is_of_unknown() {
            return;
        }
        let is_unread = !fits && !is_first && !may_name_host(raw);
        if is_unread && self.component() != Some(CILIUM_OPERATOR) {
            return;
        }
        // What is UTF-8, as nearly all is, is found out faster than what to put in its place.
        let text = str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
        let text = without_colors(&text);
        if is_first && self.of.is_none() {
            let id = text.split('\t').next().unwrap_or_default().trim();
            let here = self.subjects.entry(LineOwner::Here).or_default();
            here.identity.instances.extend(is_instance(id).then(|| id.to_owned()));
        }
        let line = unwrapped(&text, &mut self.year);
        if is_of_machine {
            self.early.hear(&line);
        }
        // Of most lines only the time and the host count.
        let of_pod = self.of.and_then(|of| of.program).or_else(|| program_of(line.pod?).filter(|of| *of == KARPENTER));
        let program = of_pod.or(line.program.as_deref()).or(self.program);
        let ends = program == Some(KARPENTER) && is_fatal(&line.message);
        let is_heard = fits || ends || line.program.is_some();
        let message = if is_heard { plain(&line.message) } else { Cow::Borrowed("") };
        let said = fits.then(|| TABLE.read_line(program, &message)).flatten();
        let said = said.filter(|said| program.is_some() || self.may_be_of(said, &message));
        let is_unknown = said.is_none() && program == Some(CILIUM_OPERATOR);
        if self.is_of_karpenter(said.as_ref(), (&line, &message), number, ends)
            || is_unknown && self.is_error_of_operator(&line, number)
            || is_unread
        {
            return;
        }
        let of_others = said.as_ref().filter(|said| is_about_others(said.known.program));
        let of_operator = said.as_ref().filter(|said| said.known.program == CILIUM_OPERATOR);
        let about = of_others.or(of_operator).and_then(|said| spoken_of(said, &line.message));
        let is_karpenter = of_others.is_some_and(|said| said.known.program == KARPENTER);
        let whose = match (about, self.of) {
            (Some(about), _) => about,
            // What is said of nothing is not said of the machine that Karpenter, or the control plane, runs on.
            (None, Some(_)) if is_karpenter => return,
            (None, _) if of_others.is_some() && !is_karpenter => return,
            (None, Some(_)) if self.is_here => LineOwner::Here,
            (None, Some(of)) => LineOwner::Pod(of.pod.to_owned()),
            (None, None) => whose(&line),
        };
        let is_new = !self.subjects.contains_key(&whose);
        // Of whom nothing was said before, there is nothing to take back.
        let takes_back = of_others.is_some_and(|said| said.known.row.undoes.is_some());
        if is_new && (takes_back || self.subjects.len() >= self.most) {
            return;
        }
        if fits {
            self.keep_denial(&whose, &message);
        }
        let wraps = said.as_ref().is_some_and(|said| said.known.row.wraps && said.reason.is_none());
        let cause = if wraps { self.cause_of(number, &line) } else { None };
        let is_traced = said.as_ref().filter(|said| said.known.row.traced);
        if let Some(said) = is_traced {
            self.traceback = Some((whose.clone(), Traceback::behind(&said.known.row.means)));
        }
        let journey = self.subjects.entry(whose).or_default();
        journey.heard_at(line.time);
        let seen = || LogLine { file: self.name.to_owned(), line: number, time: line.time, text: shown(&message) };
        if fits {
            journey.clock.hear(&message, seen);
            journey.lease.hear_of(line.program.as_deref(), &message, seen);
        }
        if fits && is_of_machine && program.is_none_or(|program| TABLE.is_called(program, KUBELET)) {
            journey.device_plugins.hear(&message, seen);
        }
        if fits && is_refusal(&message) {
            let time = line.time.or_else(|| audited_at(&message));
            journey.keep_refusal(LogLine { time, ..seen() });
        }
        if fits && is_of_machine && self.boot.hear(&line, &text, self.year, seen) {
            self.known += 1;
        }
        if line.program.as_deref() == Some(KUBELET) && is_of_machine {
            self.boot.kubelet_speaks(line.time);
        }
        if let Some(program) = line.program.as_deref() {
            let proves = said.as_ref().is_some_and(|said| said.known.row.blocks.is_some());
            if let Some(fact) = self.last_words.hear(program, (&line.message, &message), proves, seen) {
                self.known += 1;
                note(journey, fact);
            }
        }
        if let Some(said) = said {
            self.known += 1;
            let (row, year) = (&said.known.row, self.year);
            let script = ends_script(row).then(|| script_end(self.boot.before(number), year, self.name));
            let panics = row.proves == Some(Trouble::KernelPanicked);
            let oops = panics.then(|| oops(self.boot.before(number), &message, year, self.name));
            let is_early = panics && is_of_machine && self.early.is_before_user_data();
            let before = Before { script: script.flatten(), oops: oops.flatten(), cause, is_early };
            take_in(journey, &said, &message, seen(), before);
        }
    }

    /// Whether a line that names no program may be of the row's. What ends kube-proxy, the cloud controller and others
    /// is told as what ends the kubelet is: component-base v0.36.3 cli/run.go `Run`. It is not the kubelet's where the
    /// process is a container's first, which no service of systemd is, or has ended as another program before.
    fn may_be_of(&mut self, said: &Understood<'_, '_>, message: &str) -> bool {
        let (program, row) = (said.known.program, &said.known.row);
        let Some(process) = process(message).filter(|_| row.ends) else { return true };
        if program != KUBELET {
            self.ended = Some(process);
        }
        let names_it = program != KUBELET || row.says.contains("ubelet");
        names_it || process != 1 && self.ended != Some(process)
    }

    /// What Karpenter says of itself and of its whole round, or of NodePools of which it can make no NodeClaim; whether
    /// the line was such a one.
    fn is_of_karpenter(
        &mut self,
        said: Option<&Understood<'_, '_>>,
        (line, message): (&Line<'_>, &str),
        number: u64,
        ends: bool,
    ) -> bool {
        let is_unexplained = said.is_none() && is_of_worker(&line.message) && !is_passing(message);
        let said = said.filter(|said| said.known.program == KARPENTER);
        let seen = |text| LogLine { file: self.name.to_owned(), line: number, time: line.time, text: shown(text) };
        match said.map(|said| (said, said.known.row.proves)) {
            Some((_, Some(Trouble::NodeClaimRefused))) => {
                let told: Vec<_> = untaken(message).into_iter().map(|piece| (piece, seen(piece))).collect();
                for (piece, seen) in told {
                    let said = TABLE.read_line(Some(KARPENTER), piece);
                    let pool = said.as_ref().and_then(|said| pool_of_claim(named(said, "claim")?));
                    if let (Some(said), Some(pool)) = (said, pool) {
                        self.hear(LineOwner::Pool(pool.to_owned()), seen, |journey, seen| {
                            take_in(journey, &said, piece, seen, Before::default());
                        });
                    }
                }
            }
            Some((_, Some(Trouble::ProvisioningFails))) if is_passing(message) => {}
            Some((said, Some(Trouble::KarpenterEnds | Trouble::ProvisioningFails))) => {
                let pool = provisioner(message).map(|name| LineOwner::Pool(name.to_owned()));
                let (whose, seen) = (pool.unwrap_or_else(|| self.karpenter(line)), seen(message));
                self.hear(whose, seen, |journey, seen| {
                    take_in(journey, said, message, seen, Before::default());
                });
            }
            Some((said, None)) if said.known.row.undoes.is_some() => {
                let is_own = |whose: &LineOwner| matches!(whose, LineOwner::Component(_) | LineOwner::Pool(_));
                for (_, journey) in self.subjects.iter_mut().filter(|(whose, _)| is_own(whose)) {
                    take_back(journey, &said.known.row);
                }
            }
            None if ends => {
                let (whose, seen) = (self.karpenter(line), seen(message));
                let Some(fact) = self.last_words.hear(KARPENTER, (&line.message, message), false, || seen.clone())
                else {
                    return false;
                };
                let reason = TABLE.reason(message);
                let names = denied(message, reason).map(|(name, value)| (name.to_owned(), of_denial(name, &value)));
                let fact = Fact { reason, names: names.collect(), ..fact };
                self.hear(whose, seen, |journey, _| note(journey, fact));
            }
            None if is_unexplained => {
                let Some(whose) = spoken_of_by_karpenter(&line.message) else { return false };
                self.hear(whose, seen(message), |journey, seen| note(journey, unexplained(seen)));
            }
            _ => return false,
        }
        true
    }

    /// An error of an operator that names a Node and that no row knows; whether the line was such a one. It is no
    /// progress of the machine, so its time does not count.
    fn is_error_of_operator(&mut self, line: &Line<'_>, number: u64) -> bool {
        let message = plain(&line.message);
        let Some(node) = node_in_error(&message).filter(|_| !is_passing(&message)) else { return false };
        let whose = LineOwner::Host(mask(node));
        if !self.subjects.contains_key(&whose) && self.subjects.len() >= self.most {
            return false;
        }
        self.known += 1;
        let seen = LogLine { file: self.name.to_owned(), line: number, time: line.time, text: shown(&message) };
        count_in(&mut self.subjects.entry(whose).or_default().operator_errors, named_by_operator(seen));
        true
    }

    /// The component whose file this is, by its pod where that is known.
    fn karpenter(&self, line: &Line<'_>) -> LineOwner {
        LineOwner::Component(self.of.map(|of| of.pod).or(line.pod).unwrap_or(KARPENTER).to_owned())
    }

    fn hear(&mut self, whose: LineOwner, seen: LogLine, take: impl FnOnce(&mut Journey, LogLine)) {
        if !self.subjects.contains_key(&whose) && self.subjects.len() >= self.most {
            return;
        }
        self.known += 1;
        let journey = self.subjects.entry(whose).or_default();
        journey.heard_at(seen.time);
        take(journey, seen);
    }

    /// A file of one host is that host's as a whole.
    fn finish(mut self, lines: u64) -> Vec<(String, LineOwner, Journey)> {
        self.name_callers();
        let hosts: Vec<String> = self
            .subjects
            .keys()
            .filter_map(|whose| if let LineOwner::Host(host) = whose { Some(host.clone()) } else { None })
            .collect();
        let mut machine = LineOwner::Here;
        // What an operator says of one Node, it does not say on it.
        let is_of_operator = self.component() == Some(CILIUM_OPERATOR);
        if let [host] = hosts.as_slice()
            && !is_of_operator
        {
            machine = LineOwner::Host(host.clone());
            if let Some(here) = self.subjects.remove(&LineOwner::Here) {
                self.subjects.entry(machine.clone()).or_default().extend(here);
            }
        }
        if let Some(journey) = self.subjects.get_mut(&machine) {
            std::mem::take(&mut self.boot).tell(journey);
        }
        if let Some(fact) = self.repeated.take() {
            let journey = self.subjects.entry(machine).or_default();
            let goes_on = journey.milestones.contains_key(&Phase::KubeletUp) || !journey.facts.is_empty();
            journey.facts.extend((!goes_on).then_some(fact));
        }
        let mut out = Vec::new();
        for (whose, mut journey) in self.subjects {
            match &whose {
                LineOwner::Here => {}
                LineOwner::Host(host) => drop(journey.identity.hosts.insert(host.clone())),
                LineOwner::Instance(id) => drop(journey.identity.instances.insert(id.clone())),
                LineOwner::Claim(claim) => drop(journey.identity.claims.insert(claim.clone())),
                LineOwner::Class(class) => drop(journey.identity.classes.insert(class.clone())),
                LineOwner::Role(role) => drop(journey.identity.roles.insert(role.clone())),
                LineOwner::Pod(pod) => drop(journey.identity.pods.insert(pod.clone())),
                LineOwner::Pool(pool) => drop(journey.identity.pools.insert(pool.clone())),
                LineOwner::Component(pod) => drop(journey.identity.components.insert(pod.clone())),
            }
            if let Some(now) = self.of.and_then(|of| of.runs_at) {
                journey.ends = journey.ends.max(Some(now));
            }
            journey.files.insert(self.name.to_owned(), journey.ends);
            journey.lines = lines;
            out.push((self.name.to_owned(), whose, journey));
        }
        out
    }
}

/// `ipamd.(*IPAMContext).AnnotatePod` of
/// `github.com/aws/amazon-vpc-cni-k8s/pkg/ipamd.(*IPAMContext).AnnotatePod(0xc000…`. Source: Go 1.26
/// src/runtime/traceback.go `traceback2`.
fn frame(line: &str) -> Option<String> {
    let (function, _) = line.rsplit_once('(').filter(|_| line.ends_with(')') && !line.starts_with(['\t', ' ']))?;
    // The arguments may hold brackets of their own.
    let function = function.split("({").next().unwrap_or(function).split("(0x").next().unwrap_or(function);
    let of_runtime = ["runtime.", "panic", "goroutine ", "created by "].iter().any(|own| function.starts_with(own));
    let name = function.rsplit('/').next().filter(|name| name.contains('.') && !of_runtime)?;
    (name.len() <= 120 && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}

/// The process that klog names.
fn process(message: &str) -> Option<u32> {
    klog_level(message)?;
    message.split_ascii_whitespace().nth(2)?.parse().ok()
}

/// The program and the row of the table that a line is.
pub fn row_of(line: &str) -> Option<(&'static str, &'static Row)> {
    let text = without_colors(line);
    let line = unwrapped(&text, &mut None);
    let message = plain(&line.message);
    TABLE.read_line(line.program.as_deref(), &message).map(|said| (said.known.program, &said.known.row))
}

fn whose(line: &Line<'_>) -> LineOwner {
    match (&line.host, line.pod) {
        (_, Some(pod)) => LineOwner::Pod(pod.to_owned()),
        // Before a machine has its name it is localhost.
        (Some(host), None) if host != "localhost" => LineOwner::Host(host.to_string()),
        _ => LineOwner::Here,
    }
}

/// A journal's line may name the host though the table knows nothing of it, and a panic ends whatever it is of: only
/// while the host is not known that costs more than a look.
fn may_name_host(raw: &[u8]) -> bool {
    // `Jan  2 …`, `2026-…`, `{"`, `[pod/`
    matches!(raw.first(), Some(b'A'..=b'Z' | b'2' | b'{' | b'[')) || raw.starts_with(PANIC.as_bytes())
}

/// Whether it says that a script ended, and not why.
fn ends_script(row: &Row) -> bool {
    row.proves == Some(Trouble::ScriptFailed) && row.ends && row.vague
}

/// What the lines before one tell of it.
#[derive(Debug, Default)]
struct Before {
    script: Option<ScriptEnd>,
    oops: Option<Oops>,
    cause: Option<LogLine>,
    is_early: bool,
}

fn take_in(journey: &mut Journey, said: &Understood<'_, '_>, message: &str, seen: LogLine, before: Before) {
    /// As the row says of the line that later versions of bootstrap.sh print.
    const KNOWS_NO_TYPE: &str = "bootstrap.sh ended, for its image does not know the instance type";
    let row = &said.known.row;
    for (name, value) in &said.names {
        match *name {
            "instance" if is_instance(value) => drop(journey.identity.instances.insert((*value).to_owned())),
            "node" => drop(journey.identity.hosts.insert(mask(value))),
            _ => {}
        }
    }
    if let Some(phase) = row.passes {
        let program = said.known.program.to_owned();
        let passed = journey.milestones.entry(phase);
        passed.and_modify(|milestone| milestone.last = seen.clone()).or_insert_with(|| Milestone {
            program,
            first: seen.clone(),
            last: seen.clone(),
        });
    }
    if row.is_up {
        journey.came_up.insert(said.known.program.to_owned(), seen.clone());
    }
    take_back(journey, row);
    let asked = row.asks.zip(said.reason).map(|(asked, reason)| asked.trouble(reason));
    let (Some(trouble), Some(blocks)) = (asked.or(row.proves), row.blocks) else { return };
    let mut names: BTreeMap<String, String> =
        said.names.iter().map(|(name, value)| ((*name).to_owned(), quoted(value))).collect();
    names.extend(denied(message, said.reason).map(|(name, value)| (name.to_owned(), of_denial(name, &value))));
    let unknown_type = before.script.as_ref().and_then(ScriptEnd::unknown_type).map(quoted);
    let knows_no_type = unknown_type.is_some();
    names.extend(unknown_type.map(|unknown| ("type".to_owned(), unknown)));
    note(
        journey,
        Fact {
            program: said.known.program.to_owned(),
            means: if knows_no_type { KNOWS_NO_TYPE.to_owned() } else { row.means.clone() },
            trouble,
            reason: said.reason,
            blocks,
            ends: row.ends,
            at_start: row.at_start,
            vague: row.vague && !knows_no_type,
            unknown: false,
            names,
            count: 1,
            cause: before.cause,
            boot: None,
            script: before.script,
            before_user_data: before.is_early,
            oops: before.oops,
            runtime_end: None,
            first: seen.clone(),
            last: seen,
        },
    );
}

fn take_back(journey: &mut Journey, row: &Row) {
    if let Some(undone) = &row.undoes {
        journey.facts.retain(|fact| fact.means != *undone);
    }
}

/// Whether it is an error of those of Karpenter's controllers that a machine or a node class cannot do without. What
/// tags, prices, counts or replaces them may fail, and they are well.
/// Sources: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/controller.go,
/// pkg/controllers/node/termination/controller.go (up to v1.4); karpenter-provider-aws v1.14.1
/// pkg/controllers/nodeclass/controller.go, v1.0.8 (nodeclass.status).
fn is_of_worker(raw: &str) -> bool {
    const WORKERS: [&str; 7] = [
        "nodeclaim.lifecycle\"",
        "nodeclaim.termination\"",
        "node.termination\"",
        "machine.termination\"",
        "termination\"",
        "nodeclass\"",
        "nodeclass.status\"",
    ];
    let is_its = |name: &&str| {
        // Up to 0.36 the logger has the name.
        ["\"controller\":\"", "\"logger\":\"controller."].iter().any(|key| raw.contains(&format!("{key}{name}")))
    };
    raw.contains(KARPENTERS_ERROR) && WORKERS.iter().any(is_its)
}

/// What no row knows; whatever its machine passes, only its end takes it back.
fn unexplained(seen: LogLine) -> Fact {
    let means = "Karpenter cannot get on with it".to_owned();
    Fact { ends: false, ..Fact::of_no_row(KARPENTER, means, Trouble::Unexplained, Phase::Gone, seen) }
}

/// Whether Karpenter tries again at once, and nothing is wrong: somebody else wrote meanwhile, or it is told to end.
/// Sources: apiserver v0.36.3 pkg/registry/generic/registry/store.go (OptimisticLockErrorMsg); golang/go go1.26
/// src/context/context.go (Canceled).
fn is_passing(message: &str) -> bool {
    ["the object has been modified", "context canceled"].iter().any(|text| message.contains(text))
}

/// What no row knows of the lines of an operator.
fn named_by_operator(seen: LogLine) -> Fact {
    let means = "the operator of the network plugin logs an error that names the node".to_owned();
    Fact { ends: false, ..Fact::of_no_row(CILIUM_OPERATOR, means, Trouble::Unexplained, Phase::Ready, seen) }
}

/// The Node that a line with an error names, in a field or in the error. Field names of controllers are no names of
/// Nodes: `name=` is not looked at.
/// Source: cilium 0c69aafa94 pkg/ipam/allocator/multipool/node_handler.go (`nodeName`), pool_allocator.go.
fn node_in_error(message: &str) -> Option<&str> {
    const BEFORE: [&str; 3] = [" nodeName=", " node=", " node \""];
    if ![" error=", " err="].iter().any(|field| message.contains(field)) {
        return None;
    }
    let (_, rest) = BEFORE.iter().find_map(|before| message.split_once(before))?;
    let name = rest.trim_start_matches('"').split(|c: char| c.is_whitespace() || c == '"').next()?;
    let may_be_in = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    (!name.is_empty() && name.chars().all(may_be_in)).then_some(name)
}

/// Counts what was told before.
fn note(journey: &mut Journey, fact: Fact) {
    count_in(&mut journey.facts, fact);
}

fn count_in(facts: &mut Vec<Fact>, mut fact: Fact) {
    match facts.iter_mut().find(|own| own.is_same(&fact)) {
        Some(own) => {
            let says_less = own.says_why_before(&fact);
            own.learn(&mut fact);
            own.count += 1;
            if !says_less {
                own.last = fact.last;
            }
        }
        None => facts.push(fact),
    }
}

/// `eks_i-0d76cf08b353ce546_2026-01-15_1158-UTC_0.7.8.tar.gz`: the log collector names what it writes so, and people do
/// (`console-i-0d76cf08b353ce546.txt`).
fn instance_in(name: &str) -> Option<String> {
    let begins = name.match_indices("i-").filter(|(at, _)| !name[..*at].ends_with(|c: char| c.is_alphanumeric()));
    begins.into_iter().find_map(|(at, _)| {
        let id = &name[at + 2..];
        let end = id.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(id.len());
        let id = &name[at..at + 2 + end];
        is_instance(id).then(|| id.to_owned())
    })
}

/// Of what a component speaks.
fn spoken_of(said: &Understood<'_, '_>, message: &str) -> Option<LineOwner> {
    if said.known.program == KARPENTER {
        return spoken_of_by_karpenter(message);
    }
    let named = |wanted: &str| named(said, wanted).map(str::to_owned);
    let instance = named("instance").filter(|id| is_instance(id)).map(LineOwner::Instance);
    instance.or_else(|| named("node").map(LineOwner::Host)).or_else(|| named("role").map(LineOwner::Role))
}

fn named<'l>(said: &Understood<'_, 'l>, wanted: &str) -> Option<&'l str> {
    said.names.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value)
}

/// The errors of NodeClaims that Karpenter could not create, which it tells together.
/// Source: core v1.14.1 pkg/controllers/provisioning/provisioner.go `CreateNodeClaims`, `multierr.Combine`.
fn untaken(message: &str) -> Vec<&str> {
    const BEGINS: &str = "creating node claim, ";
    let begins: Vec<usize> = message.match_indices(BEGINS).map(|(at, _)| at).collect();
    let ends = begins.iter().copied().skip(1).chain([message.len()]);
    let pieces = begins.iter().zip(ends).filter_map(|(begin, end)| message.get(*begin..end));
    pieces.map(|piece| piece.trim_end_matches("; ")).collect()
}

/// The NodePool of a NodeClaim by its name, which the API server makes of it: `POOL-`, and five letters drawn unless it
/// was refused before.
/// Sources: core v1.14.1 pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `ToNodeClaim` (`GenerateName`);
/// apiserver v0.36.3 pkg/admission/errors.go `extractResourceName`.
pub fn pool_of_claim(claim: &str) -> Option<&str> {
    claim.rsplit_once('-').map(|(pool, _)| pool).filter(|pool| !pool.is_empty())
}

/// The Provisioner for which an old Karpenter speaks, in the fields that it ends its line with.
/// Source: github.com/aws/karpenter v0.6.5 pkg/controllers/provisioning/controller.go (`With("provisioner", …)`).
fn provisioner(message: &str) -> Option<&str> {
    let begins = [" provisioner=", "\"provisioner\": \""];
    let (_, rest) = begins.into_iter().find_map(|begin| message.rsplit_once(begin))?;
    rest.split([' ', '"']).next().filter(|name| !name.is_empty())
}

/// The NodeClaim, node class, Node or NodePool of which Karpenter speaks.
/// Source: controller-runtime v0.24 pkg/internal/controller/controller.go (the kind is the key), karpenter v0.3x
/// (`nodeclaim`, `nodepool`).
fn spoken_of_by_karpenter(message: &str) -> Option<LineOwner> {
    let named = |begin: &str| message.split_once(begin)?.1.split('"').next().map(str::to_owned);
    // Before 0.32 a NodeClaim was a Machine; the console's encoder leaves a space.
    let machine = || ["\"machine\": \"", "\"machine\":\""].into_iter().find_map(named);
    let claim = named("\"NodeClaim\":{\"name\":\"")
        .or_else(|| named("\"nodeclaim\":\""))
        .or_else(|| named("\"NodeClaim\": {\"name\":\""))
        .or_else(machine);
    let class = || named("\"EC2NodeClass\":{\"name\":\"").map(LineOwner::Class);
    // Up to 1.4 the controller of Nodes ends instances: core pkg/controllers/node/termination/controller.go.
    let node = || named("\"Node\":{\"name\":\"").map(LineOwner::Host);
    let pool = || named("\"NodePool\":{\"name\":\"").or_else(|| named("\"nodepool\":\"")).map(LineOwner::Pool);
    claim.map(LineOwner::Claim).or_else(class).or_else(node).or_else(pool)
}

/// The pod whose log a machine keeps in this file: `pods/NAMESPACE_POD_UID/…`,
/// `containers/POD_NAMESPACE_CONTAINER-….log`. Source: k8s.io/kubernetes v1.36.3 pkg/kubelet/kuberuntime/helpers.go
/// (BuildPodLogsDirectory), legacy.go.
fn pod_on_machine(path: &str) -> Option<&str> {
    let (folder, file) = path
        .split('/')
        .zip(path.split('/').skip(1))
        .find(|(folder, name)| matches!(*folder, "pods" | "containers") && name.matches('_').count() == 2)?;
    file.split('_').nth(usize::from(folder == "pods"))
}

/// The pod that a file or its folder is named after: `POD.log`, `POD-CONTAINER.log`, `NAMESPACE/POD/logs.txt`.
fn pod_in<'p>(path: &'p str, pods: &BTreeMap<String, bool>) -> Option<&'p str> {
    let is_end = |c: char| matches!(c, '.' | '-');
    let begins = |name: &'p str| name.match_indices(is_end).map(move |(at, _)| &name[..at]).chain([name]);
    let known = |name: &'p str| begins(name).filter(|begin| pods.contains_key(*begin)).max_by_key(|begin| begin.len());
    path.split(['/', '_']).find_map(known)
}

/// The pod of `$ kubectl logs -n kube-system POD`, which people copy along with what it printed.
fn pod_asked_for(head: &[u8], pods: &BTreeMap<String, bool>) -> Option<String> {
    let first = head.split(|byte| *byte == b'\n').next()?;
    let (_, asked) = std::str::from_utf8(first).ok()?.split_once("kubectl ")?;
    let mut words = asked.split_whitespace();
    words.find(|word| matches!(*word, "logs" | "log"))?;
    words.map(|word| word.trim_start_matches("pod/")).find(|word| pods.contains_key(*word)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{instance_in, pod_asked_for};
    use std::collections::BTreeMap;

    #[test]
    fn a_command_in_the_first_line_names_the_pod() {
        let pods = BTreeMap::from([("aws-node-x7k2p".to_owned(), true)]);
        let found = |head: &str| pod_asked_for(head.as_bytes(), &pods);
        let pod = Some("aws-node-x7k2p".to_owned());
        assert_eq!(found("$ kubectl logs -n kube-system aws-node-x7k2p -c aws-node\nline"), pod);
        assert_eq!(found("# kubectl -n kube-system logs pod/aws-node-x7k2p --previous\n"), pod);
        for other in
            ["kubectl describe pod aws-node-x7k2p\n", "$ kubectl logs web-1\n", "line\nkubectl logs aws-node-x7k2p"]
        {
            assert_eq!(found(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_is_of_the_instance_that_it_is_named_after() {
        let found = |name: &str| instance_in(name);
        let id = Some("i-0d76cf08b353ce546".to_owned());
        for name in [
            "eks_i-0d76cf08b353ce546_2026-01-15_1158-UTC_0.7.8.tar.gz",
            "logs/console-i-0d76cf08b353ce546.txt",
            "i-0d76cf08b353ce546",
            "console-i-new of i-0d76cf08b353ce546.log",
        ] {
            assert_eq!(found(name), id, "{name}");
        }
        for name in ["kernel-i-0d76.log", "api-i-0d76cf08b353ce546a.log", "wifi-0d76cf08b353ce546.log", "i-", "é-i-"] {
            assert_eq!(found(name), None, "{name}");
        }
    }
}
