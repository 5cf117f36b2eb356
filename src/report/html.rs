//! One page that holds everything: style, script and pictures stand in it, and it asks no network for anything.
//!
//! Whatever stands in objects may be written by somebody else: maud escapes it, the policy of the page lets nothing run
//! but its own script, and characters that rearrange or hide others are shown as what they are.

mod caret;
mod incident;
mod lane;
mod machines;
mod path;
mod will_fail;

use super::{Background, clock, grouping, judged};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use engine::case::duration;
use engine::diagnose::survey::Survey;
use engine::lint::LintFinding;
use incident::Chapter;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The part of the page about one cluster.
#[derive(Debug)]
pub struct Section<'p> {
    /// Its name, if there are several.
    pub cluster: Option<&'p str>,
    pub survey: &'p Survey,
    pub background: Background<'p>,
}

impl Section<'_> {
    /// ` of prod-eu`.
    fn whose(&self) -> String {
        self.cluster.map_or_else(String::new, |name| format!(" of {name}"))
    }
}

/// What only a page shows that the operator serves.
#[derive(Debug)]
pub struct Live<'p> {
    /// The page asks whether there is another one.
    pub revision: u64,
    /// The mistakes of the configuration.
    pub findings: &'p [&'p LintFinding],
}

/// The page of these clusters, and of others that could not be read, a sentence each. One that is served asks whether
/// there is another revision.
pub fn render(parts: &[Section], unread_clusters: &[String], live: Option<&Live>) -> String {
    let revision = live.map(|live| live.revision);
    let groups: Vec<_> = parts
        .iter()
        .flat_map(|part| grouping::groups(&part.survey.diagnoses).into_iter().map(move |group| (part, group)))
        .collect();
    let incidents: Vec<Chapter> =
        (1..).zip(&groups).filter_map(|(number, (part, group))| Chapter::of(number, group, part)).collect();
    let title = headline(parts);
    let oldest = parts.iter().map(|part| part.survey.judged.at).min().unwrap_or_default();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(revision.is_some()));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "nodewhy " (env!("CARGO_PKG_VERSION")) };
                title { (title) " · nodewhy" }
                style { (PreEscaped(STYLE)) }
            }
            body data-judged=(clock(oldest)) data-revision=[revision] {
                a.skip href="#incidents" { "Skip to the incidents" }
                (header(parts, unread_clusters, &title, &incidents))
                main {
                    (path::picture(parts))
                    section #incidents tabindex="-1" aria-label="Incidents" {
                        @if incidents.len() > 1 { (contents(&incidents)) }
                        @for incident in &incidents { (incident.article()) }
                    }
                    @if let Some(live) = live { (will_fail::section(live.findings)) }
                    @for part in parts { (waiting(part)) (unread(part)) }
                }
                footer {
                    p {
                        "Made by nodewhy " (env!("CARGO_PKG_VERSION")) ". It shows only the one line of user data that "
                        "is to blame, and masks values that look secret. It contains names of your machines, so share "
                        "it only with people who may know them."
                    }
                }
                p #said.quiet role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    super::visible::visible(&page.into_string())
}

/// `12 NodeClaims are stuck`.
fn headline(parts: &[Section]) -> String {
    let diagnoses = parts.iter().flat_map(|part| &part.survey.diagnoses);
    let mut kinds = diagnoses.clone().map(|diagnosis| diagnosis.spec.subject.kind.as_str());
    let kind = kinds.next().filter(|first| kinds.all(|other| other == *first));
    match (diagnoses.count(), kind) {
        (0, _) => "Nothing is stuck".to_owned(),
        (1, Some(kind)) => format!("1 {kind} is stuck"),
        (stuck, Some(kind)) => format!("{} are stuck", judged::counted_as(stuck, kind)),
        (stuck, None) => format!("{stuck} are stuck"),
    }
}

fn header(parts: &[Section], unread_clusters: &[String], title: &str, incidents: &[Chapter]) -> Markup {
    let soonest =
        incidents.iter().filter_map(|incident| Some((incident.deadline()?, incident))).min_by_key(|(at, _)| *at);
    html! {
        header.page {
            p.name { "nodewhy" }
            h1 { (title) }
            @if let Some((at, incident)) = soonest {
                p.deadline {
                    "Karpenter deletes the first "
                    @if at > incident.now() { "in " strong { (duration(at - incident.now())) } } @else { strong { "any \
                        moment now" } }
                    ": " a href={ "#" (incident.id()) } { (incident.cause()) }
                }
            }
            @for sentence in unread_clusters { p.judged { strong { (sentence) } } }
            @for part in parts {
                @for sentence in judged::sentences_of(part.cluster, part.survey) { p.judged { (sentence) } }
            }
            p #age.judged hidden {}
        }
    }
}

fn contents(incidents: &[Chapter]) -> Markup {
    html! {
        nav aria-label="Incidents" {
            ol.contents {
                @for incident in incidents {
                    li { a href={ "#" (incident.id()) } { (incident.cause()) } " " span.muted { (incident.whose()) } }
                }
            }
        }
    }
}

fn waiting(part: &Section) -> Markup {
    let (now, waiting) = (part.survey.judged.at, &part.survey.judged.waiting);
    html! {
        @if !waiting.is_empty() {
            section.card {
                h2 { "Waiting, not stuck" }
                details {
                    summary { (judged::counted_as(waiting.len(), "machine")) (part.whose()) " not stuck yet" }
                    div.wide tabindex="0" role="group" aria-label="Machines that wait" {
                        table {
                            thead {
                                tr {
                                    @for name in ["Machine", "Stage", "Waits for", "Counts as stuck from"] {
                                        th scope="col" { (name) }
                                    }
                                }
                            }
                            tbody {
                                @for machine in waiting {
                                    tr {
                                        th scope="row" { (machine.name) }
                                        td { (format!("{:?}", machine.stage)) }
                                        td { (duration(now - machine.since)) }
                                        td { (time(machine.until)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn unread(part: &Section) -> Markup {
    let (missing, notes) = (&part.survey.judged.missing, part.background.notes);
    html! {
        @if !missing.is_empty() || !notes.is_empty() {
            section.card {
                h2 { "What could not be read" (part.whose()) }
                ul {
                    @for input in missing { li { (input) } }
                    @for note in notes { li { (note) } }
                }
            }
        }
    }
}

/// A time that programs can read too.
fn time(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(clock(at)) { (clock(at)) } }
}

/// Nothing is loaded, but for the page itself where it is served, and nothing runs but the style and the script that
/// nodewhy was built with.
fn policy(is_served: bool) -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'{}",
        hash(STYLE),
        hash(SCRIPT),
        if is_served { "; connect-src 'self'" } else { "" }
    )
}
