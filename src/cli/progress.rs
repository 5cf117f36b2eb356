//! How far a command is with reading a cluster, on stderr where that is a terminal and it takes longer than a moment.

use engine::objects::input::Input;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Nobody needs to be told before.
const MOMENT: Duration = Duration::from_secs(1);
/// Objects between two looks at the clock.
const EVERY: usize = 256;

/// What was read so far.
pub struct Progress {
    /// Nothing where nobody looks.
    shown: Option<ProgressBar>,
    objects: AtomicUsize,
    began: Instant,
}

impl Progress {
    pub fn start() -> Self {
        let shown = std::io::stderr().is_terminal().then(|| {
            let style =
                ProgressStyle::with_template("{spinner} {msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
            ProgressBar::no_length().with_style(style)
        });
        Self { shown, objects: AtomicUsize::new(0), began: Instant::now() }
    }

    /// Another object of this kind.
    pub fn saw(&self, input: Input) {
        let count = self.objects.fetch_add(1, Ordering::Relaxed) + 1;
        if let Some(shown) = &self.shown
            && count.is_multiple_of(EVERY)
            && self.began.elapsed() >= MOMENT
        {
            shown.set_message(format!("read {count} objects, now {}", input.name()));
            shown.tick();
        }
    }

    pub fn end(self) {
        if let Some(shown) = self.shown {
            shown.finish_and_clear();
        }
    }
}
