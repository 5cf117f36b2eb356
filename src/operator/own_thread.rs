//! Threads for the probes and the Lease, which must continue while the operator judges. The operator has one thread
//! (docs/adr/0007), and judging a large cluster may hold it for seconds.

use std::io;
use tokio::sync::oneshot;

/// Runs a future on a thread of its own. The receiver gets its output, or an error if it panics.
pub(super) fn run<F>(
    name: &str,
    future: impl FnOnce() -> F + Send + 'static,
) -> io::Result<oneshot::Receiver<F::Output>>
where
    F: Future,
    F::Output: Send + 'static,
{
    let (says, ended) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(name.to_owned()).spawn(move || {
        // At the end of the process the receiver is gone.
        let _ = says.send(runtime.block_on(future()));
    })?;
    Ok(ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// On the thread of the operator it would never end: that thread does nothing but wait for it.
    #[tokio::test]
    async fn it_goes_on_while_the_operators_thread_is_busy() {
        let (says, heard) = std::sync::mpsc::channel();
        let ended = run("test", move || async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            says.send(1)
        });
        assert_eq!(heard.recv(), Ok(1));
        assert!(ended.expect("a thread").await.is_ok());
    }

    #[tokio::test]
    async fn one_that_panics_is_heard_of() {
        let ended = run("test", || async { assert_eq!(std::process::id(), 0, "on purpose") }).expect("a thread");
        assert!(ended.await.is_err());
    }
}
