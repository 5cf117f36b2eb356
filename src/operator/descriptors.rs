//! How many files and connections the process may have open.

/// Raises the limit to what the system permits. The usual limit of 1,024 is a relic of `select`. Go's runtime raises it
/// too.
#[cfg(unix)]
pub(super) fn raise() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::debug!(%error, "cannot raise the limit of open files");
    }
}

/// There is no such limit.
#[cfg(not(unix))]
pub(super) fn raise() {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn as_many_as_the_system_permits() {
        super::raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
