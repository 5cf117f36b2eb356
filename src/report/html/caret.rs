//! The line of a user's text that a verdict is about, with its place marked.

use crate::report::snippet;
use engine::api::Blame;
use maud::{Markup, html};

pub fn figure(blame: &Blame) -> Markup {
    html! {
        figure.blame {
            figcaption { span.arrow aria-hidden="true" { "→ " } code { (snippet::place(blame)) } }
            @if let (Some(line), Some(excerpt)) = (blame.line, &blame.excerpt) {
                pre {
                    code { span.number { (line) " │ " } (marked(blame, excerpt)) }
                }
            }
        }
    }
}

/// The excerpt with the place in `mark`.
fn marked(blame: &Blame, excerpt: &str) -> Markup {
    let parts = snippet::span(blame, excerpt)
        .and_then(|span| Some((excerpt.get(..span.start)?, excerpt.get(span.clone())?, excerpt.get(span.end..)?)));
    html! {
        @match parts {
            Some((before, place, after)) => { (before) mark { (place) } (after) }
            None => (excerpt)
        }
    }
}
