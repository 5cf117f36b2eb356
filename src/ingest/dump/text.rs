//! A text of any length. Only a block or two are in memory at a time.

use engine::objects::sink::ObjectText;
use std::io::{self, Read};

/// The most bytes of one document or item: an API server stores objects of 1.5 MiB.
const MOST: usize = 256 << 20;

pub(super) struct LongText<'r> {
    from: &'r mut dyn Read,
    /// Number of bytes to read at once.
    block: usize,
    /// Bytes after the last complete character. They may continue in the next block.
    unfinished: Vec<u8>,
    held: String,
    /// How much of the buffer was read.
    passed: usize,
    ended: bool,
    error: Option<io::Error>,
    line: usize,
    column: usize,
}

impl<'r> LongText<'r> {
    /// Holds the beginning, without a byte order mark: more than white space, where there is more.
    pub(super) fn new(from: &'r mut dyn Read, block: usize) -> Self {
        let (unfinished, held) = (Vec::new(), String::new());
        let mut text = Self { from, block, unfinished, held, passed: 0, ended: false, error: None, line: 1, column: 1 };
        while !text.ended && text.held.trim_start_matches('\u{feff}').trim_start().is_empty() {
            text.more();
        }
        text.passed = text.held.len() - text.held.trim_start_matches('\u{feff}').len();
        text
    }

    /// The unread part of the buffer.
    pub(super) fn rest(&self) -> &str {
        &self.held[self.passed..]
    }

    /// Whether the buffer holds the end of the text.
    pub(super) const fn is_whole(&self) -> bool {
        self.ended
    }

    /// Whether its last line is a whole one.
    pub(super) fn ends_a_line(&self) -> bool {
        self.held.is_empty() || self.held.ends_with('\n')
    }

    /// The number of the last line, once everything was passed.
    pub(super) fn last_line(&self) -> usize {
        self.line - usize::from(self.ends_a_line() && self.line > 1)
    }

    /// Why it ended too soon.
    pub(super) fn error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Holds more of it, unless it is whole: twice as much where that is more than a block, so that who looks from the
    /// beginning again has not looked much longer in the end.
    pub(super) fn more(&mut self) {
        self.held.drain(..self.passed);
        self.passed = 0;
        let before = self.held.len();
        if before >= MOST {
            let most = MOST >> 20;
            self.error = Some(io::Error::other(format!("one document or item has more than {most} MiB")));
            self.ended = true;
        }
        while !self.ended && self.held.len() == before {
            let wanted = self.block.max(before);
            match (&mut *self.from).take(wanted as u64).read_to_end(&mut self.unfinished) {
                Ok(read) => self.ended = read < wanted,
                Err(error) => (self.ended, self.error) = (true, Some(error)),
            }
            let last_ascii = self.unfinished.iter().rposition(u8::is_ascii);
            let finished = if self.ended { self.unfinished.len() } else { last_ascii.map_or(0, |last| last + 1) };
            self.held.push_str(&String::from_utf8_lossy(&self.unfinished[..finished]));
            self.unfinished.drain(..finished);
        }
    }

    /// Goes on by so many bytes.
    pub(super) fn pass(&mut self, bytes: usize) {
        let mut lines = self.lines();
        (self.line, self.column) = (lines.at(bytes), lines.column);
        self.passed += bytes;
    }

    /// Goes on to what is not white space; false where nothing else is left.
    pub(super) fn pass_blank(&mut self) -> bool {
        loop {
            self.pass(self.rest().len() - self.rest().trim_ascii_start().len());
            if self.ended || !self.rest().is_empty() {
                return !self.rest().is_empty();
            }
            self.more();
        }
    }

    /// Goes on to the next line, of which at least the beginning is held then.
    pub(super) fn pass_line(&mut self) {
        loop {
            let end = self.rest().find('\n').map(|last| last + 1);
            self.pass(end.unwrap_or(self.rest().len()));
            if self.ended || !self.rest().is_empty() {
                return;
            }
            self.more();
            if end.is_some() {
                return;
            }
        }
    }

    /// Goes on behind something that broke so many lines below: to the next line that opens an object as far to the
    /// right as it begins, or at the beginning of a line; else to the end.
    pub(super) fn pass_broken(&mut self, lines: usize) {
        let column = self.column;
        // The line in which it broke may be the first one of what follows, but nothing is read twice.
        for _ in 0..lines.max(1) {
            self.pass_line();
        }
        while !self.rest().is_empty() {
            let indent = self.indent();
            if self.rest()[indent..].starts_with('{') && (indent == 0 || indent + 1 == column) {
                return self.pass(indent);
            }
            self.pass_line();
        }
    }

    /// By how many spaces and tabs this line is indented.
    fn indent(&mut self) -> usize {
        loop {
            let indent = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
            if self.ended || indent < self.rest().len() {
                return indent;
            }
            self.more();
        }
    }

    /// A part of the buffer, with its place.
    pub(super) fn source<'s>(&'s self, file: &'s str, part: &'s str) -> ObjectText<'s> {
        let mut lines = self.lines();
        let line = lines.of(part);
        ObjectText { file, text: part, line, column: lines.column, items: &[] }
    }

    /// The line of the unread part, from 1.
    pub(super) const fn line(&self) -> usize {
        self.line
    }

    /// The column of the unread part in characters, from 1.
    pub(super) const fn column(&self) -> usize {
        self.column
    }

    /// The lines of the unread part.
    pub(super) fn lines(&self) -> Lines<'_> {
        Lines { text: self.rest(), offset: 0, line: self.line, column: self.column }
    }
}

/// Line numbers of places in a text that are asked for from front to back, so that the text is read once.
pub(super) struct Lines<'t> {
    text: &'t str,
    offset: usize,
    line: usize,
    /// The column of the last place that was asked for.
    pub(super) column: usize,
}

impl Lines<'_> {
    pub(super) fn at(&mut self, offset: usize) -> usize {
        if let Some(passed) = self.text.get(self.offset..offset) {
            self.line += passed.bytes().filter(|&b| b == b'\n').count();
            self.column = match passed.rsplit_once('\n') {
                Some((_, last)) => last.chars().count() + 1,
                None => self.column + passed.chars().count(),
            };
            self.offset = offset;
        }
        self.line
    }

    /// The line on which a part of the text begins.
    pub(super) fn of(&mut self, part: &str) -> usize {
        self.at(part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr()))
    }
}
