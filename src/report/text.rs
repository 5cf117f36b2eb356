//! For people: a verdict as a good compiler would print it, machines with the same cause folded into one.

use crate::report::grouping::{self, Next, SUSPECTS};
use crate::report::visible::{in_a_line, visible};
use crate::report::{Style, judged, snippet};
use engine::api::{Blame, Confidence, Fix, FixStep, NodeDiagnosis, NodeDiagnosisStatus, Risk, Suspect};
use engine::case::duration;
use engine::diagnose::survey::Survey;
use engine::rules::unknown;
use std::fmt::Write;

pub fn render(survey: &Survey, style: Style) -> String {
    let mut page = Page { out: String::new(), style };
    for group in grouping::groups(&survey.diagnoses) {
        page.group(&group);
        page.out.push('\n');
    }
    for line in judged::sentences(survey) {
        page.line(0, &line);
    }
    page.out
}

/// A line above what belongs together.
pub fn heading(text: &str, style: Style) -> String {
    Page { out: String::new(), style }.bold(&in_a_line(text)) + "\n"
}

struct Page {
    out: String,
    style: Style,
}

impl Page {
    fn bold(&self, text: &str) -> String {
        if self.style.color { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Writes the first words of a text in red, where there is color.
    fn redden(&self, text: &str, words: &str) -> String {
        if self.style.color { text.replacen(words, &format!("\x1b[1;31m{words}\x1b[0m"), 1) } else { text.to_owned() }
    }

    fn line(&mut self, indent: usize, text: &str) {
        const HANG: usize = 2;
        let width = self.style.width.saturating_sub(indent);
        for (at, line) in wrap_hanging(text, width, HANG).into_iter().enumerate() {
            let hang = if at > 0 { HANG } else { 0 };
            let _ = writeln!(self.out, "{:width$}{line}", "", width = indent + hang);
        }
    }

    fn heading(&mut self, text: &str) {
        let text = self.bold(text);
        let _ = writeln!(self.out, "\n  {text}");
    }

    fn command(&mut self, indent: usize, command: &str) {
        let _ = writeln!(self.out, "{:indent$}$ {}", "", visible(command));
    }

    /// The command that answers what stands above it.
    fn check(&mut self, command: &str) {
        let _ = writeln!(self.out, "    check: $ {}", visible(command));
    }

    fn group(&mut self, group: &[(&NodeDiagnosis, &NodeDiagnosisStatus)]) {
        let Some((first, status)) = group.first() else { return };
        let until = status.ended_at.unwrap_or(self.style.now);
        let waited = duration(until - status.first_observed_at);
        let head = format!(
            "{} ({:?}): {}, {}",
            status.cause,
            status.confidence,
            grouping::who(group),
            grouping::stuck(status.stage, &waited)
        );
        let from = self.out.len();
        self.line(0, &head);
        let head = self.redden(&self.out[from..], &status.cause);
        self.out.replace_range(from.., &head);
        self.line(2, &status.summary);
        if group.len() > 1 {
            let names: Vec<&str> = group.iter().skip(1).map(|(d, _)| d.spec.subject.name.as_str()).collect();
            self.line(2, &format!("The same holds for {}.", listed(&names)));
        }
        if status.recurrences > 0 {
            self.line(2, &format!("{} earlier machines failed the same way.", status.recurrences));
        }
        self.chain(status);
        if let Some(fate) = grouping::fate(group, self.style.now) {
            self.line(2, &fate);
        }
        let below_fate = self.out.len();
        if let Some(blame) = &status.blame {
            self.blame(blame);
        }
        if self.style.details {
            self.details(status);
        } else {
            self.next_step(&first.spec.subject.name, status, from);
        }
        if let Some(command) = grouping::saving(group, self.style.now) {
            self.save(command, from, below_fate);
        }
    }

    /// Puts the command that keeps the evidence at its place, if the verdict that begins at `from` has room for it and
    /// does not have it already.
    fn save(&mut self, command: &str, from: usize, place: usize) {
        let has_room = self.style.details || self.has_room(from);
        if has_room && !self.out[from..].contains(command) {
            self.out.insert_str(place, &format!("    {SAVING}: $ {command}\n"));
        }
    }

    /// The next step, and where to find the rest, of the verdict that begins at `from`.
    fn next_step(&mut self, name: &str, status: &NodeDiagnosisStatus, from: usize) {
        let mut page = &status.cause;
        match grouping::next(status) {
            Some(Next::Suspect(first, others)) => {
                self.line(2, &format!("suspect (not proven): {}: {}", first.grounds.cause, first.grounds.summary));
                self.check(&first.command);
                let others = &others[..others.len().min(SUSPECTS - 1)];
                let before = self.out.len();
                self.others(others, true);
                if !self.fix_of_likely(status, from) {
                    self.out.truncate(before);
                    self.others(others, false);
                    self.fix_of_likely(status, from);
                }
                if status.cause == unknown::CAUSE {
                    page = &first.grounds.cause;
                }
            }
            Some(Next::Question(unknown)) => {
                self.line(2, &format!("not known: {}", unknown.question));
                self.check(&unknown.command);
                self.fix_of_likely(status, from);
            }
            Some(Next::Fix(fix)) => {
                self.line(2, &format!("fix: {}", fix.summary));
                self.steps(fix, from);
            }
            None => {}
        }
        self.more(name, page, from);
    }

    /// Where the rest is. A text that was cut has its end there. This line never takes a second one.
    fn more(&mut self, name: &str, page: &str, from: usize) {
        const INDENT: usize = 2;
        let whole = format!("more: nodewhy diagnose {name} (the whole fix); nodewhy explain {page}");
        let is_cut = self.out[from..].lines().any(|line| line.ends_with(CUT) || line.trim() == "…");
        if is_cut && whole.chars().count() + INDENT <= self.style.width {
            self.line(INDENT, &whole);
        } else {
            self.line(INDENT, &format!("more: nodewhy diagnose {name}; nodewhy explain {page}"));
        }
    }

    /// The suspects after the first.
    fn others(&mut self, suspects: &[Suspect], in_words: bool) {
        let named = |Suspect { grounds, .. }: &Suspect| {
            let words = grounds.summary.trim_start_matches("Perhaps ").trim_end_matches('.');
            if in_words { format!("{} ({words})", grounds.cause) } else { grounds.cause.to_string() }
        };
        if !suspects.is_empty() {
            let named: Vec<String> = suspects.iter().map(named).collect();
            self.line(2, &format!("other suspects: {}", named.join(if in_words { "; " } else { ", " })));
        }
    }

    /// The first command of a fix, and the first step that changes something. The risk is that of this step, so it is
    /// left out where the step finds no room.
    fn steps(&mut self, fix: &Fix, from: usize) {
        let first = fix.steps.iter().find(|step| step.command.is_some());
        let check = first.filter(|step| step.risk == Risk::Inspect);
        let before = self.out.len();
        let (Some(check), Some(_)) = (check, acting(fix)) else {
            self.first_change(fix, false);
            if !self.has_room(from) {
                self.out.truncate(before);
            }
            if let Some(check) = check {
                self.step(check, false);
            }
            return;
        };
        self.step(check, false);
        self.first_change(fix, true);
        if !self.has_room(from) {
            self.out.truncate(before);
            self.step(check, false);
        }
    }

    /// The first step that changes something, with its risk.
    fn first_change(&mut self, fix: &Fix, in_words: bool) {
        if let Some(disruption) = &fix.disruption {
            let several = fix.steps.iter().filter(|step| step.risk != Risk::Inspect).count() > 1;
            let risk = if several { first_sentence(disruption) } else { disruption.to_string() };
            self.line(2, &format!("risk: {risk}"));
        }
        if let Some(step) = acting(fix) {
            self.step(step, in_words);
        }
    }

    /// The label says what the command is for. One that is right only under a condition has its words above it.
    fn step(&mut self, step: &FixStep, in_words: bool) {
        let Some(command) = step.command.as_deref().map(visible) else { return };
        if in_words || step.risk != Risk::Inspect && depends(&step.text) {
            self.line(2, &format!("step: {}", step.text));
        }
        let label = match step.risk {
            Risk::Inspect if step.text.starts_with("Save ") => SAVING.to_owned(),
            Risk::Inspect => "check".to_owned(),
            _ => {
                let does = match &step.text {
                    // It keeps pods off the node, and repairs nothing.
                    _ if command.starts_with("kubectl cordon ") => "meanwhile",
                    text if text.starts_with("Or ") => "or",
                    _ => "fix",
                };
                let what = if command.starts_with("aws ") { "your AWS account" } else { "the cluster" };
                format!("{does} (changes {what})")
            }
        };
        let _ = writeln!(self.out, "    {label}: $ {command}");
    }

    /// Whether the last line of the verdict that begins at `from` still has room. It says where the details are.
    fn has_room(&self, from: usize) -> bool {
        self.out[from..].lines().count() < LINES
    }

    /// A cause that is at least likely has a fix of its own, whatever is behind it. Here its first sentence and the
    /// first step that changes something are enough: the details show the rest. If they find no room, the suspects go
    /// before. Returns whether all of it found room.
    fn fix_of_likely(&mut self, status: &NodeDiagnosisStatus, from: usize) -> bool {
        let before = self.out.len();
        let Some(fix) = status.fix.as_ref().filter(|_| status.confidence != Confidence::Possible) else {
            return self.has_room(from);
        };
        self.line(2, &format!("fix: {}", first_sentence(&fix.summary)));
        let without_step = self.out.len();
        self.first_change(fix, true);
        if self.has_room(from) {
            return true;
        }
        self.out.truncate(without_step);
        if !self.has_room(from) {
            self.out.truncate(before);
        }
        false
    }

    /// What the fix does to running pods. An older operator has not said it.
    fn risk(&mut self, indent: usize, fix: &Fix) {
        if let Some(disruption) = &fix.disruption {
            self.line(indent, &format!("risk: {disruption}"));
        }
    }

    /// The chain in one line. Without details only where it fits: the summary says its end.
    fn chain(&mut self, status: &NodeDiagnosisStatus) {
        let links: Vec<String> = status.chain.iter().map(|link| format!("{} ({})", link.object, link.says)).collect();
        let line = format!("because: {}", links.join(" <- "));
        if links.len() > 1 && (self.style.details || line.chars().count() + 2 <= self.style.width) {
            self.line(2, &line);
        }
    }

    fn blame(&mut self, blame: &Blame) {
        self.line(2, &format!("--> {}", snippet::place(blame)));
        if let (Some(line), Some(excerpt)) = (blame.line, &blame.excerpt) {
            self.out.push_str(&snippet::render(blame, excerpt, line as usize, self.style.color, self.style.width));
        }
    }

    fn suspects(&mut self, suspects: &[Suspect]) {
        if suspects.is_empty() {
            return;
        }
        self.heading(
            "suspects (none is proven; sorted by the grounds for and against, then by how many reports name the cause)",
        );
        for (at, Suspect { grounds, command }) in suspects.iter().take(SUSPECTS).enumerate() {
            self.line(4, &format!("{}. {}: {}", at + 1, grounds.cause, grounds.summary));
            for observation in &grounds.speaks_for {
                self.line(7, &format!("for: {observation}"));
            }
            for observation in &grounds.against {
                self.line(7, &format!("against: {observation}"));
            }
            self.command(7, command);
            self.line(7, &format!("look for: {}", grounds.look_for));
        }
    }

    fn details(&mut self, status: &NodeDiagnosisStatus) {
        self.heading("evidence");
        for e in &status.evidence {
            let figures = e.figures.as_deref().map_or_else(String::new, |figures| format!(" ({figures})"));
            self.line(4, &format!("{} {}: {}{figures}", e.object, e.field, e.observed));
            self.line(6, &e.because);
        }
        if !status.alternatives.is_empty() {
            self.heading("also possible");
            for a in &status.alternatives {
                self.line(4, &format!("{} ({:?}): {}", a.cause, a.confidence, a.summary));
            }
        }
        self.suspects(&status.suspects);
        if !status.ruled_out.is_empty() {
            self.heading("ruled out");
            for (because, causes) in grouping::excluded(status) {
                self.line(4, &format!("{}: {because}", causes.join(", ")));
            }
        }
        if !status.unknowns.is_empty() {
            self.heading("not known from here");
            for u in &status.unknowns {
                self.line(4, &u.question);
                self.command(6, &u.command);
            }
        }
        if let Some(fix) = &status.fix {
            self.heading("fix");
            self.line(4, &fix.summary);
            self.risk(4, fix);
            for (at, step) in fix.steps.iter().enumerate() {
                self.line(4, &format!("{}. {} [{}]", at + 1, step.text, step.risk.in_words()));
                if let Some(command) = &step.command {
                    self.command(7, command);
                }
            }
            self.line(4, &format!("More: nodewhy explain {}", status.cause));
        }
    }
}

/// The label of the command that keeps the evidence.
const SAVING: &str = "save it now";

/// Of one verdict at most: what a tired reader takes in at a glance.
const LINES: usize = 16;

/// The first step that changes something. The risk of a fix begins with it.
fn acting(fix: &Fix) -> Option<&FixStep> {
    fix.steps.iter().find(|step| step.risk != Risk::Inspect)
}

/// Whether a step is an alternative, or right only under a condition, which its command does not show.
fn depends(step: &str) -> bool {
    ["Or ", "Only ", "If "].iter().any(|begin| step.starts_with(begin)) || step.contains(" if ")
}

/// The end of a text of which only the first sentence is shown.
const CUT: &str = ". …";

fn first_sentence(text: &str) -> String {
    match text.split_once(". ") {
        Some((first, _)) => format!("{first}{CUT}"),
        None => text.to_owned(),
    }
}

/// As many names as two lines hold.
fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 10;
    const CHARACTERS: usize = 150;
    let ends = names.iter().scan(0, |end, name| {
        *end += name.len() + ", ".len();
        Some(*end)
    });
    let fitting = ends.take_while(|end| *end <= CHARACTERS).count();
    let shown = fitting.clamp(1, SHOWN).min(names.len());
    let mut out = names[..shown].join(", ");
    if names.len() > shown {
        let _ = write!(out, " and {} more", names.len() - shown);
    }
    out
}

/// Breaks at blanks; a word longer than a line stays whole, so that names and commands can be copied.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    wrap_hanging(text, width, 0)
}

/// The same where all lines but the first are indented by `hang` characters.
fn wrap_hanging(text: &str, width: usize, hang: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace().map(visible) {
        let room = if lines.len() > 1 { width.saturating_sub(hang) } else { width };
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= room => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}
