//! A string that remembers where each of its characters was written.
//!
//! Quotes, escapes, variables and three programs stand between the user's text and the kubelet. A value that has gone
//! through all of them can still be pointed at in the text.

use std::{iter, ops::Range};

use crate::source_text::Span;

/// Neighbouring characters whose origins lie further apart than this were not written side by side: a variable stands
/// between them.
const LARGEST_GAP: usize = 48;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    text: String,
    /// For every byte of `text`, the character of the user's text, or the escape, that it stems from. Where all of them
    /// lie between characters, so do the places that are made of them.
    origin: Vec<Span>,
}

impl Traced {
    /// `text` as it stands in the user's text, from the byte `start` on.
    pub fn written_at(text: &str, start: usize) -> Self {
        let mut written = Self::default();
        for (at, c) in text.char_indices() {
            written.push(c, Span::new(start + at, start + at + c.len_utf8()));
        }
        written
    }

    /// `value`, which some format decoded from the text `raw` that stands at `start`: its characters are found again in
    /// their order.
    pub fn decoded(value: &str, raw: &str, start: usize) -> Self {
        if let Some(at) = raw.find(value) {
            return Self::written_at(value, start + at);
        }
        let mut decoded = Self::default();
        let mut at = 0;
        for c in value.chars() {
            let found = raw.get(at..).and_then(|rest| rest.char_indices().take(LARGEST_GAP).find(|&(_, r)| r == c));
            let from = found.map_or(at, |(skip, _)| at + skip);
            let length = raw.get(from..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
            decoded.push(c, Span::new(start + from, start + from + length));
            if found.is_some() {
                at = from + length;
            }
        }
        decoded
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Adds one character that stems from `place`.
    pub fn push(&mut self, c: char, place: Span) {
        self.text.push(c);
        self.origin.extend(iter::repeat_n(place, c.len_utf8()));
    }

    /// Adds one character that nobody wrote, just behind the last one; at `otherwise` where it is the first.
    pub fn push_unwritten(&mut self, c: char, otherwise: usize) {
        let at = self.origin.last().map_or(otherwise, |last| last.end);
        self.push(c, Span::new(at, at));
    }

    pub fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.origin.extend_from_slice(&other.origin);
    }

    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        match (self.text.get(range.clone()), self.origin.get(range)) {
            (Some(text), Some(origin)) => Self { text: text.to_owned(), origin: origin.to_vec() },
            _ => Self::default(),
        }
    }

    #[must_use]
    pub fn from(&self, start: usize) -> Self {
        self.slice(start..self.len())
    }

    /// The text with the carriage returns of its line ends left out.
    #[must_use]
    pub fn with_unix_lines(&self) -> Self {
        let mut read = Self::default();
        let mut start = 0;
        for (at, _) in self.text.match_indices("\r\n") {
            read.append(&self.slice(start..at));
            start = at + 1;
        }
        read.append(&self.from(start));
        read
    }

    /// The characters with the byte at which each begins here.
    pub fn chars(&self) -> impl Iterator<Item = (usize, char)> + '_ {
        self.text.char_indices()
    }

    /// Where the character at the byte `at` was written; just behind the last one for an `at` beyond the end.
    pub fn place(&self, at: usize) -> Span {
        let end = || self.origin.last().map(|last| Span::new(last.end, last.end));
        self.origin.get(at).copied().or_else(end).unwrap_or_default()
    }

    pub fn span(&self) -> Span {
        self.span_of(0..self.len())
    }

    /// Where `range` was written: its first stretch, where a variable tore it apart.
    pub fn span_of(&self, range: Range<usize>) -> Span {
        let Some(origins) = self.origin.get(range.clone()).filter(|o| !o.is_empty()) else {
            let at = self.place(range.start).start;
            return Span::new(at, at);
        };
        let torn = origins
            .windows(2)
            .position(|pair| matches!(pair, [a, b] if b.start < a.start || b.start - a.start > LARGEST_GAP));
        let stretch = torn.map_or(origins, |at| origins.get(..=at).unwrap_or(origins));
        let (first, last) = (stretch.first().copied().unwrap_or_default(), stretch.last().copied().unwrap_or_default());
        Span::new(first.start, last.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoded_value_is_found_again_in_its_text() {
        let decoded = Traced::decoded("a\"b", r#""a\"b""#, 10);
        assert_eq!(decoded.as_str(), "a\"b");
        assert_eq!(decoded.span(), Span::new(11, 15));
    }

    #[test]
    fn no_place_lies_within_a_character() {
        let escaped = Traced::decoded("\u{2028}a", "\"\\Lö\"", 0);
        assert!("\"\\Lö\"".get(escaped.span().start..escaped.span().end).is_some());
        let mut made = Traced::default();
        made.push_unwritten('=', 7);
        assert_eq!(made.span(), Span::new(7, 7));
        made.append(&Traced::written_at("ö", 7));
        made.push_unwritten(':', 0);
        assert_eq!((made.span(), made.span_of(3..4)), (Span::new(7, 9), Span::new(9, 9)));
    }

    #[test]
    fn a_value_torn_by_a_variable_points_at_its_first_stretch() {
        let mut value = Traced::written_at("--x=", 500);
        value.append(&Traced::written_at("far", 10));
        assert_eq!(value.span(), Span::new(500, 504));
        assert_eq!(value.span_of(4..7), Span::new(10, 13));
    }
}
