//! The slip of the keyboard behind a YAML error: parsers report where they gave up, which is often a line late.

use super::Broken;
use crate::source_text::Span;

/// The field names of the entries.
const FIELDS: &[&str] = &["rolearn", "userarn", "username", "groups"];

/// Looks for a known slip in the line that holds the byte `at`, the one before and the one after.
pub fn near(text: &str, at: usize) -> Option<Broken> {
    let line_start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let before = text
        .get(..line_start.saturating_sub(1))
        .map_or(0, |before| before.rfind('\n').map_or(0, |newline| newline + 1));
    let mut lines = Vec::with_capacity(3);
    let mut start = before;
    for line in text.get(before..)?.split_inclusive('\n').take(if before == line_start { 2 } else { 3 }) {
        lines.push((start, line.trim_end()));
        start += line.len();
    }
    lines.sort_by_key(|&(start, _)| (start != line_start, start));
    lines.into_iter().find_map(|(start, line)| slip(start, line))
}

fn slip(start: usize, line: &str) -> Option<Broken> {
    let found = |message: &str, from: usize, length: usize| {
        let span = Span::new(start + from, start + from + length);
        Some(Broken { message: message.to_owned(), span })
    };
    let content = line.trim_start();
    let indent = line.len() - content.len();
    let is_json = content.starts_with(['"', '{', '}', '[', ']']);
    if let Some(tab) = line.get(..indent).and_then(|blank| blank.find('\t')).filter(|_| !is_json) {
        return found("a tab indents this line: YAML is indented with spaces", tab, 1);
    }
    let item = content.strip_prefix('-').unwrap_or(content);
    if item.len() < content.len() && item.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return found("a blank must follow `-`", indent, 1);
    }
    let field = item.trim_start();
    let field_at = line.len() - field.len();
    let (name, value) = field.split_once(':')?;
    if FIELDS.iter().any(|known| known.eq_ignore_ascii_case(name)) && value.starts_with(|c: char| !c.is_whitespace()) {
        return found("a blank must follow `:`", field_at + name.len(), 1);
    }
    if value.trim_start().starts_with("{{") {
        let value = value.trim_start();
        return found("a value that starts with `{{` needs quotes around it", line.len() - value.len(), value.len());
    }
    None
}
