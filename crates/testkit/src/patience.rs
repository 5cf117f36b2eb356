//! How long a test waits before it says that something does not come.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// A wait that began when this was made. A test that fails has waited for so long, so it may be generous.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    since: Instant,
    nominal: Duration,
}

impl Patience {
    pub fn of(nominal: Duration) -> Self {
        Self { since: Instant::now(), nominal }
    }

    /// Whether it came to an end. A machine that has much to do gets more time.
    pub fn is_over(&self) -> bool {
        self.since.elapsed() > patience(self.nominal)
    }
}

/// The time in which this machine does what four idle cores do in `nominal`.
pub fn patience(nominal: Duration) -> Duration {
    nominal.mul_f64(scale())
}

/// Fewer cores and more processes that want one, up to eight times.
fn scale() -> f64 {
    let cores = f64::from(u16::try_from(thread::available_parallelism().map_or(1, usize::from)).unwrap_or(u16::MAX));
    // Linux proc(5): the first number is how many processes could run, over the last minute.
    let load = fs::read_to_string("/proc/loadavg").ok();
    let load: f64 = load.as_deref().and_then(|text| text.split(' ').next()?.parse().ok()).unwrap_or_default();
    ((4.0 / cores).max(1.0) * (load / cores).max(1.0)).min(8.0)
}

/// The state, once it has been the same in eight looks a quarter of a second apart.
#[track_caller]
pub fn settled<T: PartialEq>(mut state: impl FnMut() -> T) -> T {
    let patience = Patience::of(Duration::from_mins(1));
    let (mut last, mut same) = (state(), 0);
    while same < 8 {
        assert!(!patience.is_over(), "it does not come to rest");
        thread::sleep(Duration::from_millis(250));
        let now = state();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}
