//! What a thing takes: time, processor, memory.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use testkit::control_plane::ControlPlane;

/// One line of the table.
pub struct Row {
    pub what: String,
    pub time: Duration,
    /// Of the processor, by all threads.
    pub cpu: f64,
    /// In MiB, what Linux counts as resident.
    pub peak: Option<f64>,
    pub after: Option<f64>,
    /// Of the processor, by kube-apiserver meanwhile.
    pub served: Option<f64>,
}

impl Row {
    /// A time that somebody waits, whoever computes.
    pub fn delay(what: String, time: Duration) -> Self {
        Self { what, time, cpu: 0.0, peak: None, after: None, served: None }
    }

    /// What a process took since `begun`, and has now.
    pub fn of(what: impl Into<String>, begun: Instant, cpu: f64, process: u32) -> Self {
        let memory = |field| Some(memory(process, field));
        Self {
            what: what.into(),
            time: begun.elapsed(),
            cpu,
            peak: memory("VmHWM"),
            after: memory("VmRSS"),
            served: None,
        }
    }

    /// The same, with what kube-apiserver took for it.
    pub fn served(control_plane: &ControlPlane, measure: impl FnOnce() -> Self) -> Self {
        let spent = || cpu(control_plane.apiserver(), OWN);
        let before = spent();
        let row = measure();
        Self { served: row.served.or(Some(spent() - before)), ..row }
    }
}

/// The delay that so many of a hundred do not exceed.
pub fn percentile(delays: &mut [Duration], percentile: usize) -> Duration {
    delays.sort();
    delays.get(delays.len() * percentile / 100).copied().unwrap_or_default()
}

pub fn timed<T>(what: &str, rows: &mut Vec<Row>, f: impl FnOnce() -> T) -> T {
    let (begun, cpu) = (Instant::now(), own_cpu(OWN));
    let result = f();
    rows.push(Row {
        what: what.to_owned(),
        time: begun.elapsed(),
        cpu: own_cpu(OWN) - cpu,
        peak: None,
        after: None,
        served: None,
    });
    result
}

/// Where `/proc/PID/stat` has the processor's ticks: one's own, and those of children that ended. (proc(5))
pub const OWN: [usize; 2] = [14, 15];
const OF_CHILDREN: [usize; 2] = [16, 17];

fn own_cpu(fields: [usize; 2]) -> f64 {
    cpu(std::process::id(), fields)
}

/// In seconds. Linux counts in hundredths for programs.
pub fn cpu(process: u32, fields: [usize; 2]) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field, the name in parentheses, may hold spaces.
    let after_name: Vec<&str> = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ').collect();
    fields.iter().filter_map(|field| after_name.get(field - 3)?.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// Runs a command to its end, with one of these exit codes.
pub fn whole(what: &str, codes: &[i32], command: &mut Command) -> Row {
    let (begun, cpu) = (Instant::now(), own_cpu(OF_CHILDREN));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut peak = 0.0;
    let status = loop {
        if let Some(status) = child.try_wait().expect("our child") {
            break status;
        }
        peak = memory(child.id(), "VmHWM").max(peak);
        sleep(Duration::from_millis(5));
    };
    assert!(status.code().is_some_and(|code| codes.contains(&code)), "{what}: {status}");
    Row {
        what: what.to_owned(),
        time: begun.elapsed(),
        cpu: own_cpu(OF_CHILDREN) - cpu,
        peak: Some(peak),
        after: None,
        served: None,
    }
}

/// In MiB.
fn memory(process: u32, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    line.split_whitespace().find_map(|word| word.parse::<f64>().ok()).unwrap_or_default() / 1024.0
}
