//! Real logs: programs that run here are brought into trouble, and the table of log lines must know what they print.
//!
//! Each row about such a program is printed by it in these tests, or listed with the reason why it cannot be. A test
//! names its rows in its cases, in `BESIDE` if they are printed beside those of its cases, or in `NOT_HERE` as pairs of
//! rows and the reason why nothing prints them here. `tests/tidy/real_logs.rs` reads them in its source.

mod authenticator;
mod cloud_controller;
mod cloud_init;
mod containerd;
mod http;
mod karpenter;
mod kube_proxy;
mod kubelet;
mod nodeadm;
mod vpc_cni;

use logs::fact::{Reason, Trouble};
use logs::journey::Journey;
use logs::table::FILES;
use logs::{FileLimits, LogReader, row_of};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use testkit::control_plane::Process;
use testkit::log_rows::{Account, account, excused_by, rows_of};
use testkit::patience::Patience;

/// The rows that a log's lines are.
fn rows_in(log: &str) -> BTreeSet<&'static str> {
    log.lines().filter_map(row_of).map(|(_, row)| row.says.as_str()).collect()
}

/// The log, read as nodewhy reads one of one machine.
fn read(log: &str) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    reader.file("machine.log", log.as_bytes(), Some(chrono::Utc::now())).expect("a log is text");
    let mut journeys = reader.journeys();
    assert!(journeys.len() < 2, "one machine:\n{log}");
    journeys.pop().unwrap_or_default()
}

/// Holds that the log has that row, and that the root of what it tells is this. Says what is wrong.
fn judge(name: &str, log: &str, says: &str, wanted: Option<(Trouble, Option<Reason>)>) -> Option<String> {
    let journey = read(log);
    let root = journey.open().first().map(|fact| (fact.trouble, fact.reason));
    let is_known = rows_in(log).contains(says);
    (!is_known || root != wanted).then(|| {
        let lines: Vec<&str> = log.lines().filter(|line| row_of(line).is_some()).collect();
        let told: Vec<_> = journey.open().into_iter().map(|fact| (&fact.means, fact.trouble, fact.reason)).collect();
        let known = if is_known { "" } else { "has no " };
        format!("{name}: {known}{says}\n  {told:?}\n  {}", lines[lines.len().saturating_sub(4)..].join("\n  "))
    })
}

/// Every row of the program's file is among the printed ones or among those that cannot be, and none among both.
fn assert_complete(program: &str, printed: &BTreeSet<&str>, not_here: &[(&str, &str)]) {
    let (_, text) = FILES.into_iter().find(|(name, _)| *name == program).expect("a file of the table");
    let known = rows_of(text);
    let excused: BTreeSet<&str> = not_here.iter().flat_map(|(rows, _)| excused_by(rows)).collect();
    let Account { left, printed, unknown } = account(&known, printed, &excused);
    assert_eq!(left, [""; 0], "nothing printed these rows of {program}");
    let wrong = [printed, unknown].concat();
    assert!(wrong.is_empty(), "these rows of {program} are printed, or are none: {wrong:?}");
}

/// These rows are printed, too, although no case names them.
fn assert_beside(printed: &BTreeSet<&str>, beside: &[&str]) {
    let left: Vec<&str> = beside.iter().copied().filter(|row| !printed.contains(row)).collect();
    assert_eq!(left, [""; 0], "nothing printed these rows: take them out of BESIDE, and give them a case or a reason");
}

/// The command where it changes nothing of the machine: users and mounts of its own, `/run` and `/var/log` empty.
fn contained(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command
        .arg(r#"mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && exec "$@""#)
        .arg("sh")
        .arg(program)
        .args(arguments);
    command
}

/// As `kubectl logs --prefix` prints it.
fn prefixed(prefix: &str, log: &str) -> String {
    log.lines().fold(String::new(), |log, line| format!("{log}{prefix} {line}\n"))
}

/// What a program says until it ends, or says enough, or takes too long.
fn said(mut process: Process, enough: impl Fn(&str) -> bool) -> String {
    let patience = Patience::of(Duration::from_secs(30));
    loop {
        let has_ended = process.exited().is_some();
        let log = process.log();
        if has_ended || patience.is_over() || enough(&log) {
            process.kill();
            return log;
        }
        thread::sleep(Duration::from_millis(50));
    }
}
