//! Lines out of a stream, of bounded length: whatever a file holds, no more than one line of it is held.

use memchr::memchr;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};

/// Reads line by line.
pub(crate) struct RawLines<R> {
    from: BufReader<R>,
    /// Of a longer line the rest is skipped.
    longest: usize,
    line: Vec<u8>,
    pub(crate) number: u64,
}

impl<R: Read> RawLines<R> {
    pub(crate) fn new(from: R, longest: usize) -> Self {
        Self { from: BufReader::with_capacity(64 << 10, from), longest, line: Vec::new(), number: 0 }
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
            let end = memchr(b'\n', block);
            let taken = end.map_or(block.len(), |at| at + 1);
            let content = &block[..end.unwrap_or(block.len())];
            let room = self.longest.saturating_sub(self.line.len());
            self.line.extend_from_slice(&content[..content.len().min(room)]);
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

/// UTF-16 as UTF-8: PowerShell writes its logs so.
pub(crate) struct Utf16<R> {
    from: R,
    to_unit: fn([u8; 2]) -> u16,
    /// Bytes that are no whole character yet.
    waiting: Vec<u8>,
    text: Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    /// What is behind a byte order mark; the same again where it is none.
    pub(crate) fn behind(mark: &[u8], from: R) -> Result<Self, R> {
        let to_unit = match mark {
            [0xFF, 0xFE] => u16::from_le_bytes,
            [0xFE, 0xFF] => u16::from_be_bytes,
            _ => return Err(from),
        };
        Ok(Self { from, to_unit, waiting: Vec::new(), text: Cursor::default() })
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        const BLOCK: u64 = 8 << 10;
        loop {
            let count = self.text.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let more = self.from.by_ref().take(BLOCK).read_to_end(&mut self.waiting)?;
            if self.waiting.is_empty() {
                return Ok(0);
            }
            let (pairs, _) = self.waiting.as_chunks::<2>();
            let units = || pairs.iter().map(|pair| (self.to_unit)(*pair));
            // Half of a character waits for its other half, as long as there may be one.
            let is_half = more > 0 && units().next_back().is_some_and(|unit| (0xD800..0xDC00).contains(&unit));
            let whole = pairs.len() - usize::from(is_half);
            let text = char::decode_utf16(units().take(whole));
            let text: String = text.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
            let taken = if more == 0 { self.waiting.len() } else { whole * 2 };
            self.waiting.drain(..taken);
            self.text = Cursor::new(text.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RawLines, Utf16};
    use std::io::Read;

    #[test]
    fn a_text_is_the_same_in_either_byte_order_and_wherever_it_is_cut() {
        let text = "kubelet: \u{e9}\u{1F600}\r\n".repeat(3_000);
        let to_bytes: [fn(u16) -> [u8; 2]; 2] = [u16::to_le_bytes, u16::to_be_bytes];
        for (mark, to_bytes) in [[0xFF, 0xFE], [0xFE, 0xFF]].iter().zip(to_bytes) {
            for pad in ["", "x"] {
                let text = format!("{pad}{text}");
                let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
                let mut read = String::new();
                Utf16::behind(mark, bytes.as_slice()).ok().unwrap().read_to_string(&mut read).unwrap();
                assert_eq!(read, text);
                // A last odd byte is nothing.
                let mut read = String::new();
                Utf16::behind(mark, &bytes[..bytes.len() - 1]).ok().unwrap().read_to_string(&mut read).unwrap();
                assert_eq!(read, text.trim_end_matches('\n'));
            }
        }
        assert!(Utf16::behind(b"ku", b"belet".as_slice()).is_err());
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let text = format!("{}\r\nsecond\nlast", "x".repeat(200_000));
        let mut lines = RawLines::new(text.as_bytes(), 10);
        let mut read = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            read.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(read, ["xxxxxxxxxx", "second", "last"]);
        assert_eq!(lines.number, 3);
    }
}
