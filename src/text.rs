//! Places in somebody's text: byte spans, lines and columns, and the one masked line that may be shown.

/// A half-open range of bytes in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The text below this span; empty where the span does not fit the text.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    /// The same span seen from a text that begins `offset` bytes earlier.
    #[must_use]
    pub const fn shifted(self, offset: usize) -> Self {
        Self::new(self.start + offset, self.end + offset)
    }
}

/// Line and column as an editor counts them: both from 1, the column in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// Where the byte `offset` of `text` is. An offset beyond the end is the end.
#[must_use]
pub fn position(text: &str, offset: usize) -> Position {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let line = before.split(|&b| b == b'\n').count();
    let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
    Position { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(column).unwrap_or(u32::MAX) }
}

/// The line that holds the byte `offset`, without its line end.
#[must_use]
pub fn line_at(text: &str, offset: usize) -> &str {
    let bytes = text.as_bytes();
    let offset = offset.min(bytes.len());
    let start = bytes[..offset].iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
    let end = bytes[offset..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| offset + at);
    text.get(start..end).unwrap_or_default().trim_end_matches('\r')
}

/// The most characters of a user's line that nodewhy shows.
const EXCERPT_LIMIT: usize = 240;

/// Names whose values are never shown.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "token",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "access-key",
    "accesskey",
    "private_key",
    "private-key",
    "credential",
    "authorization",
];

/// `line` with the values of secret-looking names replaced by `***`, control characters by blanks.
///
/// A name ends at `=`, `:` or a blank; its value ends at the next blank, quote or comma.
#[must_use]
pub fn mask(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let mut out = String::with_capacity(line.len());
    let mut at = 0;
    while let Some((start, name)) = next_secret(&lower, at) {
        let (kept, next) = match value_after(&lower, start + name.len()) {
            Some(value) if value.start < value.end => (value.start, value.end),
            _ => (start + name.len(), start + name.len()),
        };
        out.push_str(&line[at..kept]);
        if next > kept {
            out.push_str("***");
        }
        at = next;
    }
    out.push_str(&line[at..]);
    out.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The one line of a user's text that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub shown: String,
    /// Column of the place in `shown`, in characters from 1; `None` where the place itself is masked.
    pub caret: Option<u32>,
}

/// The line of `span`, masked and cut around the place where it is long.
#[must_use]
pub fn excerpt(text: &str, span: Span) -> Excerpt {
    const BEFORE: usize = 60;
    let line = line_at(text, span.start);
    let masked = mask(line);
    let column = position(text, span.start).column as usize - 1;
    let before: String = mask(&line.chars().take(column).collect::<String>());
    let caret = masked.starts_with(&before).then(|| before.chars().count());
    let skip = caret.filter(|at| *at > EXCERPT_LIMIT / 2).map_or(0, |at| at - BEFORE);
    let mut shown: String = masked.chars().skip(skip).take(EXCERPT_LIMIT).collect();
    if masked.chars().count() > skip + EXCERPT_LIMIT {
        shown.push('…');
    }
    let mut caret = caret.map(|at| at - skip + 1);
    if skip > 0 {
        shown.insert(0, '…');
        caret = caret.map(|at| at + 1);
    }
    Excerpt { shown, caret: caret.and_then(|at| u32::try_from(at).ok()) }
}

fn next_secret(lower: &str, from: usize) -> Option<(usize, &'static str)> {
    SECRET_NAMES
        .iter()
        .filter_map(|name| lower[from..].find(name).map(|at| (from + at, *name)))
        .min_by_key(|&(at, name)| (at, usize::MAX - name.len()))
}

/// The value that follows a secret name ending at `from`: the rest of the name, a separator, then the value.
fn value_after(lower: &str, from: usize) -> Option<Span> {
    let rest = &lower[from..];
    let name_end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
    let after = &rest[name_end..];
    let separator = after.find(|c: char| !matches!(c, '=' | ':' | ' ' | '\t' | '"' | '\''))?;
    if separator == 0 {
        return None;
    }
    let start = from + name_end + separator;
    // "authorization: Bearer x": the scheme is not the secret, what follows it is.
    let start = ["bearer ", "basic "].iter().find(|s| lower[start..].starts_with(**s)).map_or(start, |s| start + s.len());
    let end = lower[start..].find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',')).map_or(lower.len(), |at| start + at);
    Some(Span::new(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_from_one_and_in_characters() {
        let text = "one\nzwölf x\r\nthree";
        assert_eq!(position(text, 0), Position { line: 1, column: 1 });
        assert_eq!(position(text, text.find('x').unwrap()), Position { line: 2, column: 7 });
        assert_eq!(position(text, 9_999), Position { line: 3, column: 6 });
        assert_eq!(line_at(text, 5), "zwölf x");
    }

    #[test]
    fn secret_values_are_masked_and_the_rest_is_not() {
        assert_eq!(mask("export DB_PASSWORD=hunter2 MODE=x"), "export DB_PASSWORD=*** MODE=x");
        assert_eq!(mask("curl -H 'Authorization: Bearer abc.def' https://x"), "curl -H 'Authorization: Bearer ***' https://x");
        assert_eq!(mask("token: \"s3cr3t\", next"), "token: \"***\", next");
        assert_eq!(mask("--node-labels=a=b"), "--node-labels=a=b");
    }

    #[test]
    fn an_excerpt_points_at_the_place_though_a_value_before_it_is_masked() {
        let text = "first\nexport TOKEN=abcdefgh; run --flag=x";
        let start = text.find("--flag").unwrap();
        let excerpt = excerpt(text, Span::new(start, start + 8));
        assert_eq!(excerpt.shown, "export TOKEN=*** run --flag=x");
        assert_eq!(excerpt.caret, Some(22));
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}--flag=x{}", "a".repeat(5_000), "b".repeat(5_000));
        let excerpt = excerpt(&text, Span::new(5_000, 5_008));
        assert!(excerpt.shown.chars().count() <= EXCERPT_LIMIT + 2);
        let caret = excerpt.caret.unwrap() as usize - 1;
        assert!(excerpt.shown.chars().skip(caret).collect::<String>().starts_with("--flag=x"));
    }
}
