//! For people: a verdict as a good compiler would print it, machines with the same cause folded into one.

use crate::report::{Style, clock, judged, snippet};
use engine::api::{Blame, Confidence, Fix, NodeDiagnosis, NodeDiagnosisStatus, Outcome, Suspect};
use engine::case::duration;
use engine::diagnose::survey::Survey;
use engine::rules::unknown;
use std::fmt::Write;

pub fn render(survey: &Survey, style: Style) -> String {
    let mut page = Page { out: String::new(), style };
    for group in groups(&survey.diagnoses) {
        page.group(&group);
        page.out.push('\n');
    }
    for line in judged::sentences(&survey.judged) {
        page.line(0, &line);
    }
    page.out
}

/// Machines with the same cause, stage, pool, class and blame, in the order of their first.
fn groups(diagnoses: &[NodeDiagnosis]) -> Vec<Vec<(&NodeDiagnosis, &NodeDiagnosisStatus)>> {
    let mut groups: Vec<Vec<(&NodeDiagnosis, &NodeDiagnosisStatus)>> = Vec::new();
    for diagnosis in diagnoses {
        let Some(status) = &diagnosis.status else { continue };
        let same = groups.iter_mut().find(|g| {
            g.first().is_some_and(|(first, s)| {
                let spec = (&first.spec.node_pool, &first.spec.node_class, &first.spec.subject.kind);
                spec == (&diagnosis.spec.node_pool, &diagnosis.spec.node_class, &diagnosis.spec.subject.kind)
                    && (&s.cause, s.stage, s.outcome) == (&status.cause, status.stage, status.outcome)
            })
        });
        match same {
            Some(group) => group.push((diagnosis, status)),
            None => groups.push(vec![(diagnosis, status)]),
        }
    }
    groups
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
        let _ = writeln!(self.out, "{:indent$}$ {command}", "");
    }

    fn group(&mut self, group: &[(&NodeDiagnosis, &NodeDiagnosisStatus)]) {
        let Some((first, status)) = group.first() else { return };
        let until = status.ended_at.unwrap_or(self.style.now);
        let waited = duration(until - status.first_observed_at);
        let head = format!(
            "{} ({:?}): {}, stuck at {:?} for {waited}",
            status.cause,
            status.confidence,
            who(group),
            status.stage
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
        self.fate(first, group);
        if let Some(blame) = &status.blame {
            self.blame(blame);
        }
        if self.style.details {
            self.details(status);
        } else {
            self.next_step(&first.spec.subject.name, status);
        }
    }

    /// What to do, and where the rest stands.
    fn next_step(&mut self, name: &str, status: &NodeDiagnosisStatus) {
        // A guess at a root cause has its own question, which comes before other guesses.
        let is_guess = status.confidence == Confidence::Possible && status.cause != unknown::CAUSE;
        if let [first, others @ ..] = &status.suspects[..]
            && !is_guess
        {
            self.line(2, &format!("first suspect: {}: {}", first.grounds.cause, first.grounds.summary));
            self.command(4, &first.command);
            let others: Vec<&str> = others.iter().take(SUSPECTS - 1).map(|suspect| &*suspect.grounds.cause).collect();
            if !others.is_empty() {
                self.line(2, &format!("then: {}", others.join(", ")));
            }
            return self.line(2, &format!("more: nodewhy diagnose {name}; nodewhy explain {}", first.grounds.cause));
        }
        let open = status.unknowns.first().filter(|_| status.confidence != Confidence::Certain);
        if let Some(unknown) = open {
            self.line(2, &format!("not known: {}", unknown.question));
            self.command(4, &unknown.command);
        } else if let Some(Fix { summary, steps, .. }) = &status.fix {
            self.line(2, &format!("fix: {summary}"));
            if let Some(command) = steps.iter().find_map(|step| step.command.as_deref()) {
                self.command(4, command);
            }
        }
        self.line(2, &format!("more: nodewhy diagnose {name}; nodewhy explain {}", status.cause));
    }

    /// The chain in one line. Without details only where it fits: the summary says its end.
    fn chain(&mut self, status: &NodeDiagnosisStatus) {
        let links: Vec<String> = status.chain.iter().map(|link| format!("{} ({})", link.object, link.says)).collect();
        let line = format!("because: {}", links.join(" <- "));
        if links.len() > 1 && (self.style.details || line.chars().count() + 2 <= self.style.width) {
            self.line(2, &line);
        }
    }

    fn fate(&mut self, first: &NodeDiagnosis, group: &[(&NodeDiagnosis, &NodeDiagnosisStatus)]) {
        let Some(status) = &first.status else { return };
        if let (Some(outcome), Some(at)) = (status.outcome, status.ended_at) {
            let how = match outcome {
                Outcome::Recovered => "It recovered",
                Outcome::Terminated => "Karpenter's timeout deleted it",
                Outcome::Deleted => "It was deleted",
            };
            return self.line(2, &format!("{how} at {}.", clock(at)));
        }
        let soonest = group.iter().filter_map(|(d, s)| Some((s.terminates_at?, &d.spec.subject.name))).min();
        if let Some((at, name)) = soonest {
            let text = if at > self.style.now {
                format!(
                    "Karpenter deletes {name} in {} ({}), and the evidence with it.",
                    duration(at - self.style.now),
                    clock(at)
                )
            } else {
                format!(
                    "Karpenter deletes {name} any moment now: its timeout passed {} ago.",
                    duration(self.style.now - at)
                )
            };
            self.line(2, &text);
        }
    }

    fn blame(&mut self, blame: &Blame) {
        let namespace =
            blame.namespace.as_deref().filter(|n| !n.is_empty()).map_or_else(String::new, |n| format!(" in {n}"));
        let field = blame.field.as_deref().map_or_else(String::new, |f| format!(" {f}"));
        let place = format!("{}{namespace}{field}", blame.object);
        let (Some(line), Some(excerpt)) = (blame.line, &blame.excerpt) else {
            let text = format!("--> {place}");
            return self.line(2, &text);
        };
        let place = match blame.column {
            Some(column) => format!("{place}:{line}:{column}"),
            None => format!("{place}:{line}"),
        };
        self.line(2, &format!("--> {place}"));
        self.out.push_str(&snippet::render(blame, excerpt, line as usize, self.style.color, self.style.width));
    }

    fn suspects(&mut self, suspects: &[Suspect]) {
        if suspects.is_empty() {
            return;
        }
        self.heading(
            "suspects (none is proven; by what speaks for and against, then by how many reports name the cause)",
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
            // One observation often excludes several causes.
            let mut excluded: Vec<(&str, Vec<&str>)> = Vec::new();
            for r in &status.ruled_out {
                match excluded.iter_mut().find(|(because, _)| *because == r.because) {
                    Some((_, causes)) => causes.push(&r.cause),
                    None => excluded.push((&r.because, vec![&r.cause])),
                }
            }
            for (because, causes) in excluded {
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
            for (at, step) in fix.steps.iter().enumerate() {
                self.line(4, &format!("{}. {} [{:?}]", at + 1, step.text, step.risk));
                if let Some(command) = &step.command {
                    self.command(7, command);
                }
            }
            self.line(4, &format!("More: nodewhy explain {}", status.cause));
        }
    }
}

/// How many suspects are told; JSON has all.
const SUSPECTS: usize = 3;

/// `NodeClaim general-7xk2p`, or `NodeClaim general-7xk2p and 11 more of NodePool general`.
fn who(group: &[(&NodeDiagnosis, &NodeDiagnosisStatus)]) -> String {
    let Some((first, _)) = group.first() else { return String::new() };
    let subject = &first.spec.subject;
    let named = format!("{} {}", subject.kind, subject.name);
    if group.len() == 1 {
        return named;
    }
    let pool = first.spec.node_pool.as_ref().filter(|_| subject.kind != "NodePool");
    let of = pool.map_or_else(String::new, |pool| format!(" of NodePool {}", pool.name));
    format!("{named} and {} more{of}", group.len() - 1)
}

fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 10;
    let mut out = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        let _ = write!(out, " and {} more", names.len() - SHOWN);
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
    for word in text.split_whitespace() {
        let room = if lines.len() > 1 { width.saturating_sub(hang) } else { width };
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= room => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
