//! Machines that one cause holds up: what is wrong, what to do, and everything that it rests on.

use super::machines::Machines;
use super::{Section, caret};
use crate::report::grouping::{self, Diagnosed, Next};
use crate::report::judged::counted_as;
use crate::report::one_cluster::use_context;
use chrono::{DateTime, Utc};
use engine::api::{Confidence, Fix, Named, NodeDiagnosisStatus, Risk, Suspect};
use engine::case::duration;
use maud::{Markup, html};

#[derive(Debug)]
pub struct Chapter<'d> {
    number: usize,
    /// Which one, where there are several.
    cluster: Option<&'d str>,
    group: &'d [Diagnosed<'d>],
    first: Diagnosed<'d>,
    machines: Machines<'d>,
    now: DateTime<Utc>,
}

impl<'d> Chapter<'d> {
    pub fn of(number: usize, group: &'d [Diagnosed<'d>], part: &Section<'d>) -> Option<Self> {
        let (first, now) = (*group.first()?, part.survey.judged.at);
        let machines = Machines::of(group, part.background.cluster, now);
        Some(Self { number, cluster: part.cluster, group, first, machines, now })
    }

    pub fn id(&self) -> String {
        format!("incident-{}", self.number)
    }

    /// The same of the same incident on another page, where its number and its machines may differ.
    fn key(&self) -> String {
        let (spec, status) = (&self.first.0.spec, self.first.1);
        let name = |of: &Option<Named>| of.as_ref().map_or_else(String::new, |of| of.name.clone());
        let cluster = self.cluster.unwrap_or_default();
        let (pool, class) = (name(&spec.node_pool), name(&spec.node_class));
        format!(
            "{cluster}/{}/{:?}/{:?}/{}/{pool}/{class}",
            status.cause, status.stage, status.outcome, spec.subject.kind
        )
    }

    pub fn cause(&self) -> &'d str {
        &self.first.1.cause
    }

    /// When it was judged.
    pub const fn now(&self) -> DateTime<Utc> {
        self.now
    }

    pub fn deadline(&self) -> Option<DateTime<Utc>> {
        grouping::deadline(self.group).map(|(at, _)| at)
    }

    /// `12 NodeClaims of NodePool general, node class default, cluster prod-eu`.
    pub fn whose(&self) -> String {
        let (counted, of) = (grouping::counted(self.group), grouping::of_pool(self.group));
        let class = grouping::shared(self.group, |spec| &spec.node_class);
        let class = class.map_or_else(String::new, |class| format!(", node class {}", class.name));
        let cluster = self.cluster.map_or_else(String::new, |name| format!(", cluster {name}"));
        format!("{counted}{of}{class}{cluster}")
    }

    pub fn article(&self) -> Markup {
        let status = self.first.1;
        let waited = duration(status.ended_at.unwrap_or(self.now) - status.first_observed_at);
        let is_suspected = matches!(grouping::next(status), Some(Next::Suspect(..)));
        html! {
            article.card id=(self.id()) data-incident=(self.key()) aria-labelledby={ (self.id()) "-cause" } {
                header {
                    p.kicker {
                        span.stage { (grouping::stuck(status.stage, &waited)) }
                        " · " (self.whose())
                    }
                    h2 id={ (self.id()) "-cause" } { (status.cause) }
                    (confidence(status.confidence))
                    p.summary { (status.summary) }
                    @if let Some(fate) = grouping::fate(self.group, self.now) { p.fate { (fate) } }
                    @if status.recurrences > 0 { p { (status.recurrences) " earlier machines failed the same way." } }
                }
                @if let Some(cluster) = self.cluster {
                    section { h3 { "First run" } (command(&use_context(cluster))) }
                }
                @if let Some(blame) = &status.blame { (caret::figure(blame)) }
                @if is_suspected { (suspects(&status.suspects, true)) }
                (questions(status))
                @if let Some(fix) = &status.fix { (how_to_fix(fix)) }
                @if !is_suspected { (suspects(&status.suspects, false)) }
                (self.machines.section())
                (because(status))
                (evidence(status))
                (alternatives(status))
                (ruled_out(status))
            }
        }
    }
}

/// In words, and as dots for the glance.
fn confidence(confidence: Confidence) -> Markup {
    let (dots, means) = match confidence {
        Confidence::Certain => ("●●●", "the objects prove it"),
        Confidence::Likely => ("●●○", "the best explanation"),
        Confidence::Possible => ("●○○", "one of several explanations"),
    };
    html! {
        p.confidence { span aria-hidden="true" { (dots) " " } strong { (format!("{confidence:?}")) } ": " (means) }
    }
}

/// A command with a button that copies it; without the script, the text is there all the same.
fn command(command: &str) -> Markup {
    html! {
        div.command {
            pre { code { (command) } }
            button.copy type="button" hidden aria-label={ "Copy: " (command) } { "Copy" }
        }
    }
}

fn how_to_fix(fix: &Fix) -> Markup {
    html! {
        section {
            h3 { "Fix" }
            p { (fix.summary) }
            @if let Some(disruption) = &fix.disruption { p { strong { "Risk: " } (disruption) } }
            ol.steps {
                @for step in &fix.steps {
                    li {
                        p { (step.text) " " (risk(step.risk)) }
                        @if let Some(text) = &step.command { (command(text)) }
                    }
                }
            }
            @if fix.documentation.starts_with("https://") {
                p { a href=(fix.documentation) rel="noreferrer" { "The page of this cause" } }
            }
        }
    }
}

fn risk(risk: Risk) -> Markup {
    let class = match risk {
        Risk::Inspect => "inspect",
        Risk::LowRisk => "low",
        Risk::Mutating => "mutating",
        Risk::Destructive => "destructive",
    };
    html! { span class={ "risk " (class) } { (risk.in_words()) } }
}

fn suspects(suspects: &[Suspect], open: bool) -> Markup {
    html! {
        @if !suspects.is_empty() {
            details.part open[open] {
                summary { h3 { "Suspects" } span.muted { "none is proven; the likeliest first" } }
                ol.suspects {
                    @for Suspect { grounds, command: settles } in suspects {
                        li {
                            p { strong { (grounds.cause) } ": " (grounds.summary) }
                            ul.plain {
                                @for observation in &grounds.speaks_for {
                                    li { span.muted { "+ for: " } (observation) }
                                }
                                @for observation in &grounds.against {
                                    li { span.muted { "− against: " } (observation) }
                                }
                            }
                            (command(settles))
                            p { span.muted { "look for: " } (grounds.look_for) }
                        }
                    }
                }
            }
        }
    }
}

fn questions(status: &NodeDiagnosisStatus) -> Markup {
    let is_next = matches!(grouping::next(status), Some(Next::Question(_)));
    html! {
        @if !status.unknowns.is_empty() {
            details.part open[is_next] {
                summary { h3 { "Not known from here" } span.muted { (counted_as(status.unknowns.len(), "question")) } }
                ul {
                    @for unknown in &status.unknowns { li { p { (unknown.question) } (command(&unknown.command)) } }
                }
            }
        }
    }
}

fn because(status: &NodeDiagnosisStatus) -> Markup {
    html! {
        @if status.chain.len() > 1 {
            details.part open {
                summary { h3 { "What explains what" } span.muted { "the symptom first, its cause last" } }
                ol.chain { @for link in &status.chain { li { code { (link.object) } " " (link.says) } } }
            }
        }
    }
}

fn evidence(status: &NodeDiagnosisStatus) -> Markup {
    html! {
        details.part open {
            summary { h3 { "Evidence" } span.muted { (counted_as(status.evidence.len(), "observation")) } }
            ul.evidence {
                @for piece in &status.evidence {
                    li {
                        p { code { (piece.object) " " (piece.field) } }
                        p { q { (piece.observed) } @if let Some(figures) = &piece.figures { " (" (figures) ")" } }
                        p.muted { (piece.because) }
                    }
                }
            }
        }
    }
}

fn alternatives(status: &NodeDiagnosisStatus) -> Markup {
    html! {
        @if !status.alternatives.is_empty() {
            details.part {
                summary { h3 { "Also possible" } span.muted { (status.alternatives.len()) } }
                ul {
                    @for other in &status.alternatives {
                        li { strong { (other.cause) } " (" (format!("{:?}", other.confidence)) "): " (other.summary) }
                    }
                }
            }
        }
    }
}

fn ruled_out(status: &NodeDiagnosisStatus) -> Markup {
    html! {
        @if !status.ruled_out.is_empty() {
            details.part {
                summary { h3 { "Ruled out" } span.muted { (counted_as(status.ruled_out.len(), "cause")) } }
                ul {
                    @for (because, causes) in grouping::excluded(status) {
                        li { strong { (causes.join(", ")) } ": " (because) }
                    }
                }
            }
        }
    }
}
