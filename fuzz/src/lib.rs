//! What every target demands of a reader: it returns, and its places lie in the text.

use logs::{FileLimits, LogReader};
use readers::source_text::{Span, excerpt};

/// EC2 takes no more user data than this.
pub const USER_DATA_LIMIT: usize = 16 * 1024;

/// Panics where `span` is no piece of `text`, or where no line can be shown for it.
pub fn lies_in(span: Span, text: &str) {
    assert!(text.get(span.start..span.end).is_some(), "{span:?} in {} bytes", text.len());
    let _ = excerpt(text, span);
}

/// Panics where what is read of a log is not what stands in it.
pub fn read_log(bytes: &[u8]) {
    let mut reader = LogReader::new(FileLimits { line: 4 << 10, subjects: 100, value: 16 << 10 });
    let _ = reader.file("kubelet.log", bytes, None);
    for journey in reader.journeys() {
        assert!(journey.open().len() <= journey.facts.len());
        for fact in &journey.facts {
            // The first of two hosts of one file need not be the upper one: they are put together by the clock.
            assert!(fact.first.line.max(fact.last.line) <= journey.lines, "{fact:?}");
            assert!(fact.count > 0 && fact.last.text.chars().count() < 500, "{fact:?}");
        }
    }
}
