//! The line of a user's text that a verdict is about, with a caret under the place.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};
use engine::api::Blame;

/// The excerpt of `blame` as line `line`, drawn as compilers do, two blanks in; cut where the line is wider than
/// `width`.
pub fn render(blame: &Blame, excerpt: &str, line: usize, color: bool, width: usize) -> String {
    let mut snippet = Snippet::source(excerpt).line_start(line).fold(false);
    if let Some(span) = blame.caret.and_then(|caret| byte_span(excerpt, caret, blame.length.unwrap_or(1))) {
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

/// The bytes of `length` characters from the column `caret`, both counted in characters.
fn byte_span(text: &str, caret: u32, length: u32) -> Option<std::ops::Range<usize>> {
    let from = usize::try_from(caret).ok()?.checked_sub(1)?;
    let mut starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let start = starts.nth(from)?;
    let end = starts.nth(usize::try_from(length).ok()?.saturating_sub(1)).unwrap_or(text.len());
    Some(start..end)
}
