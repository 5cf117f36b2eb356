//! A kubelet that systemd stopped and did not start again. The lines are shortened from
//! bottlerocket-os/bottlerocket#4721.

use logs::fact::{Fact, Trouble};
use logs::journey::Journey;
use logs::{FileLimits, LogReader};

const KILLED: &str =
    "2026-01-15T11:47:12Z node systemd[1]: containerd.service: Main process exited, code=killed, status=9/KILL";
const FAILED: &str = "2026-01-15T11:47:12Z node systemd[1]: containerd.service: Failed with result 'signal'.";
const STOPPED: &str = "2026-01-15T11:47:13Z node systemd[1]: Stopped Kubelet.";
const RUNTIME: &str = "2026-01-15T11:47:17Z node systemd[1]: Started containerd container runtime.";
const LATER: &str = "2026-01-15T11:53:22Z node systemd[1]: Started Daily Cleanup of Temporary Directories.";

fn read(lines: &[&str]) -> Journey {
    let mut reader = LogReader::new(FileLimits::default());
    reader.file("journal.log", lines.join("\n").as_bytes(), None).expect("text");
    reader.of_one_machine()
}

fn stop(lines: &[&str]) -> Option<Fact> {
    read(lines).open().into_iter().find(|fact| fact.trouble == Trouble::KubeletStopped).cloned()
}

#[test]
fn a_kubelet_that_stopped_with_containerd_and_does_not_come_back_is_told() {
    let fact = stop(&[KILLED, FAILED, STOPPED, RUNTIME, LATER]).expect("a stop");
    let end = fact.runtime_end.as_ref().expect("the end of containerd");
    assert!(end.ended.text.contains("status=9/KILL"), "{end:#?}");
    assert_eq!(end.up.as_ref().map(|up| up.line), Some(4));
    assert!(fact.means.contains("with containerd") && fact.vague, "{fact:#?}");
    // Stopped in order, the kubelet ends first.
    let stopped = "2026-01-15T11:47:14Z node systemd[1]: Stopped containerd container runtime.";
    let end = stop(&[STOPPED, stopped, RUNTIME, LATER]).and_then(|fact| fact.runtime_end);
    assert_eq!(end.map(|end| end.ended.line), Some(2));
    let by_id = STOPPED.replace("Kubelet", "kubelet.service - Kubernetes Kubelet");
    assert!(stop(&[KILLED, &by_id, RUNTIME, LATER]).is_some());
}

#[test]
fn without_containerd_only_the_stop_is_told() {
    let long_before = KILLED.replace("11:47:12", "11:40:12");
    for lines in [vec![STOPPED, LATER], vec![long_before.as_str(), STOPPED, LATER]] {
        let fact = stop(&lines).expect("a stop");
        assert!(fact.runtime_end.is_none() && !fact.means.contains("containerd"), "{fact:#?}");
    }
}

#[test]
fn a_kubelet_that_runs_again_was_not_stopped() {
    for again in [
        "2026-01-15T11:47:18Z node systemd[1]: Started Kubelet.",
        "2026-01-15T11:47:18Z node systemd[1]: Starting kubelet.service - Kubernetes Kubelet...",
        r#"2026-01-15T11:47:30Z node kubelet[4021]: I0115 11:47:30.030211    4021 kubelet.go:2463] "SyncLoop ADD" source="api""#,
    ] {
        assert_eq!(stop(&[KILLED, FAILED, STOPPED, RUNTIME, again, LATER]), None, "{again}");
    }
    // What it said last may come late.
    let late = r#"2026-01-15T11:47:14Z node kubelet[1431]: I0115 11:47:14.030211    1431 dynamic_cafile_content.go:175] "Shutting down controller""#;
    assert!(stop(&[KILLED, STOPPED, late, RUNTIME, LATER]).is_some());
}

#[test]
fn a_machine_that_goes_down_takes_its_kubelet_with_it() {
    let down = "2026-01-15T11:47:11Z node systemd[1]: Stopped target Multi-User System.";
    assert_eq!(stop(&[down, STOPPED, LATER]), None);
    for down in [
        "Reached target shutdown.target - System Shutdown.",
        "Reached target Shutdown.",
        "Stopped target Multi-User System.",
    ] {
        let down = format!("2026-01-15T11:47:15Z node systemd[1]: {down}");
        assert_eq!(stop(&[KILLED, STOPPED, &down, LATER]), None, "{down}");
    }
    let boots = "2026-01-15T11:48:15Z node kernel: Linux version 6.12.55 (builder@host)";
    assert_eq!(stop(&[STOPPED, boots, LATER]), None);
    // A user's own manager goes down each time that he logs out.
    let of_user = "2026-01-15T11:47:11Z node systemd[2222]: Reached target Shutdown.";
    assert!(stop(&[of_user, KILLED, STOPPED, of_user, LATER]).is_some());
}

#[test]
fn a_kubelet_that_ended_by_itself_or_a_log_that_ends_with_it_tells_of_no_stop() {
    let exited =
        "2026-01-15T11:47:12Z node systemd[1]: kubelet.service: Main process exited, code=exited, status=1/FAILURE";
    assert_eq!(stop(&[exited, STOPPED, LATER]), None);
    let exited = exited.replace("1/FAILURE", "0/SUCCESS");
    assert!(stop(&[&exited, STOPPED, LATER]).is_some());
    assert_eq!(stop(&[KILLED, FAILED, STOPPED, RUNTIME]), None, "it may be started in the next second");
}
