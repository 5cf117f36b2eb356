//! The words of systemd about its jobs, on the console and in the journal.

/// What makes a line worth a look for [`crate::boot`]. The table looks for these, too.
pub(crate) const NEEDLES: [&str; 21] = [
    "Failed to start ",
    "Failed to mount ",
    "Failed to listen on ",
    "Failed to activate swap ",
    "Timed out starting ",
    "Timed out waiting for device ",
    "Dependency failed for ",
    ": Failed with result '",
    "ain process exited",
    "ontrol process exited",
    "See 'systemctl status ",
    " running for ",
    " running (",
    "Started ",
    "Finished ",
    "Mounted ",
    "Reached target ",
    "Linux version ",
    "ordering cycle",
    "Ordering cycle found",
    "Found dependency on ",
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
