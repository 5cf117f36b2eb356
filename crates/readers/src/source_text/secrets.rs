//! Where in a text secrets stand: the one way in for all that looks for them.
//!
//! Secret are the values of secret-looking names, what commands take as a password, tokens known by their looks, long
//! base64 (keys, and lines of PEM blocks), passwords in URLs, and the lines below a name that begins a block.

use super::Span;
use super::names::{is_setting, value_after};
use super::tokens::{begun, in_url, is_base64, shown, token};
use super::{blocks, commands};

/// The secrets of a text, from front to back, none within another. `by_line`: the text is a file, in which a quotation
/// mark that is never closed hides no more than its line; else a message, of which it hides the rest.
pub(super) fn secrets(text: &str, by_line: bool) -> Vec<Span> {
    let mut found = inline(text, by_line);
    if text.contains('\n') {
        found.extend(blocks::blocks(text));
        for line in logical_lines(text) {
            commands::secrets(text, line, &mut found);
        }
    } else {
        commands::secrets(text, Span::new(0, text.len()), &mut found);
    }
    found.retain(|span| span.start < span.end);
    found.sort_unstable();
    found.dedup_by(|span, last| {
        let overlaps = span.start < last.end;
        if overlaps {
            last.end = last.end.max(span.end);
        }
        overlaps
    });
    found
}

/// What is known by its looks, or by the name right before it.
fn inline(text: &str, by_line: bool) -> Vec<Span> {
    let mut lower = None;
    let mut found = Vec::new();
    let mut at = 0;
    // Each step looks at a bounded piece, or at one that it then leaves behind: linear in the text.
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let word_starts = !text[..at].ends_with(is_base64);
        if word_starts && rest.starts_with("arn:aws") {
            at += rest.find(|c| !in_arn(c)).unwrap_or(rest.len());
            continue;
        }
        let secret = value_after(text, &mut lower, at, by_line)
            .or_else(|| if word_starts { token(rest) } else { None }.map(|len| Span::new(at + shown(rest), at + len)))
            .or_else(|| if after_sign(text, at) { begun(rest) } else { None }.map(|len| Span::new(at, at + len)))
            .or_else(|| in_url(rest).map(|span| span.shifted(at)));
        if let Some(secret) = secret {
            at = secret.end;
            if !is_setting(secret.of(text)) {
                found.push(secret);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Whether a sign of base64 stands before this place that often stands before a value too.
fn after_sign(text: &str, at: usize) -> bool {
    text[..at].ends_with(['=', '/'])
}

/// What an ARN is made of. It names a thing and is no secret, however long it is.
const fn in_arn(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '/' | '_' | '-' | '.' | '@' | '+' | '*')
}

/// Lines as a shell joins them: one that ends in a backslash or a pipe goes on in the next. Of a text that `echo`
/// prints over several lines, the lines together too.
fn logical_lines(text: &str) -> Vec<Span> {
    /// Lines of one quotation.
    const LINES: usize = 16;
    let mut lines: Vec<Span> = Vec::new();
    let mut goes_on = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        match lines.last_mut().filter(|_| goes_on) {
            Some(last) => last.end = end,
            None => lines.push(Span::new(at, end)),
        }
        goes_on = line.trim_end().ends_with(['\\', '|']);
        at = end;
    }
    let mut quoted = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let said = line.of(text);
        if !["echo ", "printf "].iter().any(|prints| said.contains(prints)) {
            continue;
        }
        let open = ['"', '\''].into_iter().find(|quote| said.matches(*quote).count() % 2 == 1);
        let Some(quote) = open else { continue };
        let behind = lines[number + 1..].iter().take(LINES);
        if let Some(last) = behind.into_iter().find(|line| line.of(text).contains(quote)) {
            quoted.push(Span::new(line.start, last.end));
        }
    }
    lines.extend(quoted);
    lines
}
