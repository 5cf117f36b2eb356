//! What tells the operator to end: SIGTERM or SIGINT; Ctrl-C where there are no signals.

use std::io;

/// Listens from now on.
#[cfg(unix)]
pub(super) fn told() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => (),
            _ = interrupt.recv() => (),
        }
    })
}

/// Listens from now on.
#[cfg(windows)]
pub(super) fn told() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(async move {
        interrupt.recv().await;
    })
}
