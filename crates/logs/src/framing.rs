//! Lines out of a stream, of bounded length: whatever a file holds, no more than one line of it is held.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Reads line by line.
pub(crate) struct RawLines<R> {
    from: BufReader<R>,
    /// Of a longer line the rest is skipped.
    longest: usize,
    line: Vec<u8>,
    pub(crate) number: u64,
    pub(crate) bytes: u64,
}

impl<R: Read> RawLines<R> {
    pub(crate) fn new(from: R, longest: usize) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from), longest, line: Vec::new(), number: 0, bytes: 0 }
    }

    /// The line that was read last.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// The next line without its end; `None` after the last.
    pub(crate) fn next(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut any = false;
        loop {
            let block = match self.from.fill_buf() {
                Ok(block) => block,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if block.is_empty() {
                break;
            }
            any = true;
            let end = block.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(block.len(), |at| at + 1);
            let content = &block[..end.unwrap_or(block.len())];
            let room = self.longest.saturating_sub(self.line.len());
            self.line.extend_from_slice(&content[..content.len().min(room)]);
            self.bytes += taken as u64;
            self.from.consume(taken);
            if end.is_some() {
                break;
            }
        }
        self.number += u64::from(any);
        while self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(any.then_some(self.line.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::RawLines;

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = format!("{}\r\nsecond\nlast", "x".repeat(200_000));
        let mut lines = RawLines::new(text.as_bytes(), 10);
        let mut read = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            read.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(read, ["xxxxxxxxxx", "second", "last"]);
        assert_eq!((lines.number, lines.bytes), (3, text.len() as u64));
    }
}
