//! The line of a user's text that a verdict is about, with a caret under the place.

use super::visible::in_a_line;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};
use engine::api::Blame;

/// The excerpt of `blame` as line `line`, drawn as compilers do, two blanks in; cut where the line is wider than
/// `width`.
pub fn render(blame: &Blame, excerpt: &str, line: usize, color: bool, width: usize) -> String {
    let shown = in_a_line(excerpt);
    let mut snippet = Snippet::source(&shown).line_start(line).fold(false);
    // Where a character is shown as several, columns are no places any more.
    if let Some(span) = span(blame, excerpt).filter(|_| shown == excerpt) {
        snippet = snippet.annotation(AnnotationKind::Primary.span(span));
    }
    let renderer = if color { Renderer::styled() } else { Renderer::plain() }
        .decor_style(DecorStyle::Ascii)
        .term_width(width.saturating_sub(2));
    let shown = renderer.render(&[Group::with_level(Level::ERROR).element(snippet)]);
    // The renderer's own first line names no file here; the place stands above.
    let lines = shown.lines().filter(|l| !l.trim_start().starts_with("-->"));
    lines.fold(String::new(), |out, line| out + "  " + line + "\n")
}

/// Where it stands: `EC2NodeClass/default spec.userData:3:39`.
pub fn place(blame: &Blame) -> String {
    let namespace =
        blame.namespace.as_deref().filter(|n| !n.is_empty()).map_or_else(String::new, |n| format!(" in {n}"));
    let field = blame.field.as_deref().map_or_else(String::new, |f| format!(" {f}"));
    let line = blame.line.filter(|_| blame.excerpt.is_some());
    let line = line.map_or_else(String::new, |line| format!(":{line}"));
    let column = blame.column.filter(|_| !line.is_empty()).map_or_else(String::new, |column| format!(":{column}"));
    in_a_line(&format!("{}{namespace}{field}{line}{column}", blame.object))
}

/// The bytes of the place that `blame` is about in its excerpt.
pub fn span(blame: &Blame, excerpt: &str) -> Option<std::ops::Range<usize>> {
    byte_span(excerpt, blame.caret?, blame.length.unwrap_or(1))
}

/// The bytes of `length` characters from the column `caret`, both counted in characters.
fn byte_span(text: &str, caret: u32, length: u32) -> Option<std::ops::Range<usize>> {
    let from = usize::try_from(caret).ok()?.checked_sub(1)?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let start = starts.nth(from)?;
    let end = starts.nth(usize::try_from(length).ok()?.saturating_sub(1)).unwrap_or(text.len());
    Some(start..end)
}
