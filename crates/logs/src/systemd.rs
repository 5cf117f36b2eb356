//! The words of systemd about its jobs, on the console and in the journal.

/// What makes a line worth a look for [`crate::boot`]. The table looks for these, too.
pub(crate) const NEEDLES: [&str; 17] = [
    "Failed to start ",
    "Failed to mount ",
    "Failed to listen on ",
    "Failed to activate swap ",
    "Timed out starting ",
    "Timed out waiting for device ",
    "Dependency failed for ",
    ": Failed with result '",
    "ain process exited",
    "See 'systemctl status ",
    " running for ",
    " running (",
    "Started ",
    "Finished ",
    "Mounted ",
    "Reached target ",
    "Linux version ",
];
