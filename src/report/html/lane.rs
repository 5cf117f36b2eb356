//! A time line drawn as SVG: one lane a machine, a shape a kind of moment, so that it reads without color.
//!
//! All marks of a kind are one path, and positions are attributes: thousands of lanes stay cheap, and the page's policy
//! permits no style on an element.

use chrono::{DateTime, Utc};
use engine::diagnose::timeline::{Moment, Turn};
use maud::{Markup, html};
use std::fmt::Write;

const WIDTH: i64 = 360;
const HEIGHT: i64 = 20;
/// Room for half a mark at both ends.
const MARGIN: i64 = 8;

/// The time that the lanes of one incident share, so that they can be compared.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
    pub now: DateTime<Utc>,
}

impl Axis {
    pub fn over<'m>(moments: impl Iterator<Item = &'m Moment>, now: DateTime<Utc>) -> Self {
        let (from, to) = moments.fold((now, now), |(from, to), moment| (from.min(moment.at), to.max(moment.at)));
        Self { from, to, now }
    }

    fn x(&self, at: DateTime<Utc>) -> i64 {
        let whole = (self.to - self.from).num_milliseconds().max(1);
        let part = (at - self.from).num_milliseconds().clamp(0, whole);
        // In 128 bits: a dump may hold the year 1 and the year 9999.
        let x = i128::from(part) * i128::from(WIDTH - 2 * MARGIN) / i128::from(whole);
        MARGIN + i64::try_from(x).unwrap_or_default()
    }

    /// The lane of one machine, which has waited since then.
    pub fn lane(&self, moments: &[Moment], since: DateTime<Utc>, until: DateTime<Utc>) -> Markup {
        let middle = HEIGHT / 2;
        let begins = moments.first().map_or(since, |moment| moment.at);
        let (from, waits, until) = (self.x(begins), self.x(since), self.x(until));
        let now = self.x(self.now);
        html! {
            svg.lane viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" {
                title { (told(moments)) }
                path.life d={ "M" (from) " " (middle) "H" (until) } {}
                path.wait d={ "M" (waits) " " (middle) "H" (until) } {}
                path.now d={ "M" (now) " 0V" (HEIGHT) } {}
                @for turn in TURNS {
                    @let of_kind = moments.iter().filter(|moment| moment.turn == turn);
                    @let marks = marks(of_kind.map(|moment| self.x(moment.at)), turn);
                    @if !marks.is_empty() { path class={ "mark " (class(turn)) } d=(marks) {} }
                }
            }
        }
    }
}

const TURNS: [Turn; 7] =
    [Turn::Created, Turn::Passed, Turn::Condition, Turn::Event, Turn::Warning, Turn::Deleted, Turn::Deadline];

/// The text of the drawing, for screen readers and tooltips.
fn told(moments: &[Moment]) -> String {
    let lines: Vec<String> =
        moments.iter().map(|moment| format!("{} {}", hour(moment.at), short(&moment.says))).collect();
    if lines.is_empty() { "no time is known".to_owned() } else { lines.join("\n") }
}

/// The short text of a moment. Events can be long, and the list below shows them in full.
fn short(says: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = says.chars().take(SHOWN).collect();
    if shown.len() < says.len() {
        shown.push('…');
    }
    shown
}

fn class(turn: Turn) -> &'static str {
    match turn {
        Turn::Created => "created",
        Turn::Passed => "passed",
        Turn::Condition => "condition",
        Turn::Event => "event",
        Turn::Warning => "warning",
        Turn::Deleted => "deleted",
        Turn::Deadline => "deadline",
    }
}

/// The marks of one kind at these places.
fn marks(places: impl Iterator<Item = i64>, turn: Turn) -> String {
    let middle = HEIGHT / 2;
    let mut path = String::new();
    for x in places {
        let _ = match turn {
            Turn::Created | Turn::Passed => write!(path, "M{} {middle}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", x - 4),
            Turn::Condition => write!(path, "M{x} {}l4 4-4 4-4-4z", middle - 4),
            Turn::Event => write!(path, "M{x} {}v10", middle - 5),
            Turn::Warning => write!(path, "M{x} {}l5 9h-10z", middle - 6),
            Turn::Deleted => write!(path, "M{} {}l8 8m0-8l-8 8", x - 4, middle - 4),
            Turn::Deadline => write!(path, "M{} {}h8v8h-8z", x - 4, middle - 4),
        };
    }
    path
}

/// What the shapes mean.
pub fn legend() -> Markup {
    const MEANS: [(Turn, &str); 7] = [
        (Turn::Created, "created"),
        (Turn::Passed, "a step passed"),
        (Turn::Condition, "a condition turned"),
        (Turn::Event, "Event"),
        (Turn::Warning, "Event of type Warning"),
        (Turn::Deleted, "deletion"),
        (Turn::Deadline, "Karpenter deletes it then"),
    ];
    html! {
        ul.legend aria-label="Marks of the time lines" {
            @for (turn, means) in MEANS { li { (mark(turn)) (means) } }
            li { svg.sign viewBox="0 0 20 20" aria-hidden="true" { path.wait d="M2 10H18" {} } "stuck there" }
            li { svg.sign viewBox="0 0 20 20" aria-hidden="true" { path.now d="M10 0V20" {} } "when it was judged" }
        }
    }
}

/// One mark by itself.
pub fn mark(turn: Turn) -> Markup {
    let drawn = marks([HEIGHT / 2].into_iter(), turn);
    html! { svg.sign viewBox="0 0 20 20" aria-hidden="true" { path class={ "mark " (class(turn)) } d=(drawn) {} } }
}

/// `13:39:35`: the day stands at the axis.
pub fn hour(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S").to_string()
}
