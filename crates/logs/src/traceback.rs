//! The trace of Python's that cloud-init prints behind the line that a stage failed: its last line says why.

use crate::wrapping::Line;

/// A trace that is being told.
#[derive(Debug)]
pub(crate) struct Traceback {
    /// What the line in front of it means.
    pub(crate) means: String,
    /// The lines that may still belong to it.
    left: u32,
    has_error: bool,
}

impl Traceback {
    pub(crate) fn behind(means: &str) -> Self {
        /// Longer than any trace of cloud-init's.
        const LONGEST: u32 = 200;
        Self { means: means.to_owned(), left: LONGEST, has_error: false }
    }

    /// Whether the trace goes on behind this line. An error that wraps another has a trace of its own.
    /// Source: canonical/cloud-init 22.4.2 cloudinit/cmd/main.py `print_exc`.
    pub(crate) fn goes_on(&mut self, line: &Line<'_>) -> bool {
        self.left = self.left.saturating_sub(1);
        self.has_error |= error(&line.message).is_some();
        let is_rule = line.message.len() > 20 && line.message.trim().bytes().all(|b| b == b'-');
        self.left > 0 && !(is_rule && self.has_error)
    }
}

/// The error with which a trace ends: `RuntimeError: [Errno 2] …`, `cloudinit.url_helper.UrlError: …`.
/// Source: python/cpython v3.12.0 Lib/traceback.py `TracebackException.format_exception_only`.
pub(crate) fn error(message: &str) -> Option<&str> {
    let (class, _) = message.split_once(": ")?;
    let is_name = class.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_'));
    (is_name && (class.ends_with("Error") || class.ends_with("Exception"))).then_some(message.trim_end())
}

#[cfg(test)]
mod tests {
    use super::error;

    #[test]
    fn only_the_line_with_the_error_says_why() {
        for told in ["RuntimeError: no such file", "cloudinit.url_helper.UrlError: [Errno 2] No such file: '/etc/a'"] {
            assert_eq!(error(told), Some(told));
        }
        for part in [
            "Traceback (most recent call last):",
            "  File \"/usr/lib/python3/dist-packages/cloudinit/user_data.py\", line 237, in _do_include",
            "    raise UrlError(cause=e, code=code, headers=None, url=url) from e",
            "The above exception was the direct cause of the following exception:",
            "Starting: Error: none",
        ] {
            assert_eq!(error(part), None, "{part}");
        }
    }
}
