//! One page that holds everything: style, script and pictures stand in it, and it asks no network for anything.
//!
//! Whatever stands in objects may be written by somebody else: maud escapes it, the policy of the page lets nothing run
//! but its own script, and characters that rearrange or hide others are shown as what they are.

mod caret;
mod incident;
mod lane;
mod machines;
mod path;

use super::{Background, clock, grouping, judged};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use chrono::{DateTime, Utc};
use engine::case::duration;
use engine::diagnose::survey::Survey;
use incident::Chapter;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

pub fn render(survey: &Survey, background: &Background) -> String {
    let now = survey.judged.at;
    let groups = grouping::groups(&survey.diagnoses);
    let incidents: Vec<Chapter> =
        (1..).zip(&groups).filter_map(|(number, group)| Chapter::of(number, group, background.cluster, now)).collect();
    let title = headline(survey);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                meta name="generator" content={ "nodewhy " (env!("CARGO_PKG_VERSION")) };
                title { (title) " · nodewhy" }
                style { (PreEscaped(STYLE)) }
            }
            body data-judged=(clock(now)) {
                a.skip href="#incidents" { "Skip to the incidents" }
                (header(survey, &title, &incidents, now))
                main {
                    (path::picture(survey))
                    section #incidents tabindex="-1" aria-label="Incidents" {
                        @if incidents.len() > 1 { (contents(&incidents)) }
                        @for incident in &incidents { (incident.article()) }
                    }
                    (waiting(survey, now))
                    (unread(survey, background))
                }
                footer {
                    p {
                        "Made by nodewhy " (env!("CARGO_PKG_VERSION")) ". Of user data it shows the one line that is to "
                        "blame; values that look secret are masked. Names of your machines are in it: share it as you "
                        "would share those."
                    }
                }
                p #said.quiet role="status" {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    visible(&page.into_string())
}

/// `12 NodeClaims are stuck`.
fn headline(survey: &Survey) -> String {
    let mut kinds = survey.diagnoses.iter().map(|diagnosis| diagnosis.spec.subject.kind.as_str());
    let kind = kinds.next().filter(|first| kinds.all(|other| other == *first));
    match (survey.diagnoses.len(), kind) {
        (0, _) => "Nothing is stuck".to_owned(),
        (1, Some(kind)) => format!("1 {kind} is stuck"),
        (stuck, Some(kind)) => format!("{} are stuck", judged::counted_as(stuck, kind)),
        (stuck, None) => format!("{stuck} are stuck"),
    }
}

fn header(survey: &Survey, title: &str, incidents: &[Chapter], now: DateTime<Utc>) -> Markup {
    let soonest =
        incidents.iter().filter_map(|incident| Some((incident.deadline()?, incident))).min_by_key(|(at, _)| *at);
    html! {
        header.page {
            p.name { "nodewhy" }
            h1 { (title) }
            @if let Some((at, incident)) = soonest {
                p.deadline {
                    "Karpenter deletes the first "
                    @if at > now { "in " strong { (duration(at - now)) } } @else { strong { "any moment now" } }
                    ": " a href={ "#" (incident.id()) } { (incident.cause()) }
                }
            }
            @for sentence in judged::sentences(&survey.judged) { p.judged { (sentence) } }
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

fn waiting(survey: &Survey, now: DateTime<Utc>) -> Markup {
    let waiting = &survey.judged.waiting;
    html! {
        @if !waiting.is_empty() {
            section.card {
                h2 { "Waiting, as machines do" }
                details {
                    summary { (judged::counted_as(waiting.len(), "machine")) " not stuck yet" }
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

fn unread(survey: &Survey, background: &Background) -> Markup {
    html! {
        @if !survey.judged.missing.is_empty() || !background.notes.is_empty() {
            section.card {
                h2 { "What could not be read" }
                ul {
                    @for input in &survey.judged.missing { li { (input) } }
                    @for note in background.notes { li { (note) } }
                }
            }
        }
    }
}

/// A time that programs can read too.
fn time(at: DateTime<Utc>) -> Markup {
    html! { time datetime=(clock(at)) { (clock(at)) } }
}

/// Nothing is loaded, and nothing runs but the style and the script that nodewhy was built with.
fn policy() -> String {
    let hash = |text: &str| BASE64_STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
}

/// Puts `⟨U+202E⟩` for each character that would hide others, or put them in another order than they stand in: a name
/// must not pass for another one. Of the control characters only the line end is layout.
fn visible(page: &str) -> String {
    let mut out = String::with_capacity(page.len());
    for c in page.chars() {
        match c {
            '\n' => out.push(c),
            c if c.is_control() || is_unseen(c) => drop(write!(out, "⟨U+{:04X}⟩", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Characters that have no shape of their own or order others: Bidi_Control, and of the format characters (Cf) those
/// that no script needs to be read here.
/// Source: Unicode 17.0, PropList.txt and DerivedGeneralCategory.txt.
const fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
