//! The words of systemd about its jobs, on the console and in the journal.

/// What begins a line about a job that failed, before the unit. Source: systemd v257 src/core/job.c
/// `job_done_message_format`, and the units' own formats in mount.c, device.c, socket.c, swap.c and target.c.
pub(crate) const FAILED: [&str; 6] = [
    "Failed to start ",
    "Failed to mount ",
    "Failed to listen on ",
    "Failed to activate swap ",
    "Timed out starting ",
    "Timed out waiting for device ",
];

/// The same of a job that is done.
pub(crate) const UP: [&str; 3] = ["Started ", "Finished ", "Mounted "];

/// The same of a target that is reached.
pub(crate) const REACHED: &str = "Reached target ";

/// The same of a job that is not started, because one that it needs failed.
pub(crate) const NOT_STARTED: &str = "Dependency failed for ";

/// The same of a job that is deleted to break an ordering cycle.
pub(crate) const SKIPPED: &str = "Ordering cycle found, skipping ";

pub(crate) const STOPPED_TARGET: &str = "Stopped target ";

/// What systemd says of the end of a unit's main process, behind the unit: `code=exited, status=1/FAILURE` of
/// `Main process exited, code=exited, status=1/FAILURE`.
/// Source: systemd v257 src/core/service.c `service_sigchld_event`; v219 writes "main process exited".
pub(crate) fn main_process_end(how: &str) -> Option<&str> {
    how.strip_prefix("Main process exited, ").or_else(|| how.strip_prefix("main process exited, "))
}

/// Whether it says of a unit, behind its name, that the unit or its main process ended.
/// Source: systemd v257 src/core/unit.c `unit_log_failure`.
pub(crate) fn is_end(how: &str) -> bool {
    main_process_end(how).is_some() || how.starts_with("Failed with result '")
}

/// Whether it says so of a command beside the main process. Source: as of the main process.
pub(crate) fn is_control_end(how: &str) -> bool {
    ["Control process exited, ", "control process exited, "].iter().any(|begin| how.starts_with(begin))
}

/// What makes a line worth a look for [`crate::kubelet_stop`].
pub(crate) const STOP_NEEDLES: [&str; 10] = [
    "Stopped kubelet.service",
    "Stopped Kubelet",
    "Stopped Kubernetes Kubelet",
    "Stopped snap.kubelet-eks.daemon.service",
    "Stopped Service for snap application kubelet-eks.daemon",
    "Stopped containerd",
    STOPPED_TARGET,
    "Starting kubelet.service",
    "Starting Kubelet",
    "Starting Kubernetes Kubelet",
];

/// What makes a line worth a look for [`crate::boot`]. The table looks for these, too.
pub(crate) const NEEDLES: [&[&str]; 4] = [
    &FAILED,
    &UP,
    &[REACHED, NOT_STARTED, SKIPPED],
    &[
        ": Failed with result '",
        "ain process exited",
        "ontrol process exited",
        "See 'systemctl status ",
        " running for ",
        " running (",
        "Linux version ",
        "ordering cycle",
        "Found dependency on ",
    ],
];

/// What begins a line that names a unit of an ordering cycle: the first such line, and those behind it.
/// Source: systemd v257 src/core/transaction.c `transaction_verify_order_one`; v258 names all units in one line.
pub(crate) const CYCLE: [&str; 2] = ["Found ordering cycle", "Found dependency on "];

/// The unit whose start job systemd deletes so that the others can be ordered: it neither starts nor fails.
/// Source: as above; v219 does not begin with the unit that it started from.
pub(crate) fn deleted_job(message: &str) -> Option<&str> {
    let (job, _) = message.split_once("/start deleted to break ordering cycle")?;
    job.rsplit_once("Job ").map(|(_, unit)| unit)
}

#[cfg(test)]
mod tests {
    use super::{is_control_end, is_end, main_process_end};

    #[test]
    fn the_end_of_a_process_is_known_in_the_words_of_each_version() {
        for how in ["Main process exited, code=exited, status=1/FAILURE", "main process exited, code=exited, status=1"]
        {
            assert!(main_process_end(how).is_some_and(|rest| rest.starts_with("code=exited")), "{how}");
            assert!(is_end(how) && !is_control_end(how), "{how}");
        }
        let control = "Control process exited, code=exited, status=1/FAILURE";
        assert!(is_control_end(control) && !is_end(control));
        assert!(is_end("Failed with result 'exit-code'."));
        for other in ["Failed with error", "The main process exited, ", "Scheduled restart job"] {
            assert!(!is_end(other) && !is_control_end(other), "{other}");
        }
    }
}
