//! What every target demands of a reader: it returns, and its places lie in the text.

use readers::source_text::{Span, excerpt};

/// EC2 takes no more user data than this.
pub const USER_DATA_LIMIT: usize = 16 * 1024;

/// Panics where `span` is no piece of `text`, or where no line can be shown for it.
pub fn lies_in(span: Span, text: &str) {
    assert!(text.get(span.start..span.end).is_some(), "{span:?} in {} bytes", text.len());
    let _ = excerpt(text, span);
}
