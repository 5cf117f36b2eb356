//! Serves HTTP to whoever comes, within limits: a connection costs a file descriptor, and who may reach the port may
//! open as many as he likes.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// A request's head comes within this time, and the next one of a connection too.
const HEAD: Duration = Duration::from_secs(10);
/// After an error of the listener, such as no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// What clients may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections that are open at once. One more closes the oldest: who holds many open keeps nobody out.
    pub connections: usize,
    /// How long a connection may last; `None` where answers go on for as long as somebody reads.
    pub lasts: Option<Duration>,
}

/// Serves until `stop` resolves.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let mut stop = pin!(stop);
    let mut open = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    by_age.retain(|connection| !connection.is_finished());
                    while by_age.len() >= limits.connections && let Some(oldest) = by_age.pop_front() {
                        oldest.abort();
                    }
                    by_age.push_back(open.spawn(connection(stream, router.clone(), limits.lasts)));
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection cannot be accepted");
                    sleep(PAUSE).await;
                }
            },
            Some(_) = open.join_next() => {}
            () = &mut stop => return,
        }
    }
}

async fn connection(stream: TcpStream, router: Router, lasts: Option<Duration>) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let served = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // How a client ends is of no concern to anybody.
    let _ = match lasts {
        Some(lasts) => timeout(lasts, served).await.unwrap_or(Ok(())),
        None => served.await,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    const LIMITS: Limits = Limits { connections: 8, lasts: Some(Duration::from_secs(30)) };

    async fn server() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let router = Router::new().route("/livez", get(|| async { "ok" }));
        tokio::spawn(serve(listener, router, LIMITS, std::future::pending()));
        address
    }

    async fn probe(address: SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer
    }

    #[tokio::test]
    async fn who_opens_many_connections_does_not_keep_a_probe_out() {
        let address = server().await;
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(TcpStream::connect(address).await.expect("it listens"));
        }
        let answer = probe(address).await;
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        // The oldest were closed for the newer ones.
        for stream in &mut idle[..40] {
            let end = stream.read(&mut [0]).await;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    }

    /// Only then is the time held still: connecting takes some.
    #[tokio::test]
    async fn who_sends_no_request_is_not_waited_for() {
        let address = server().await;
        let mut slow = TcpStream::connect(address).await.expect("it listens");
        slow.write_all(b"GET /livez HTTP/1.1\r\nHost: x").await.expect("it reads");
        assert!(probe(address).await.ends_with("ok"));
        tokio::time::pause();
        let closed = timeout(HEAD * 2, slow.read(&mut [0; 512])).await;
        assert!(closed.is_ok(), "it is still open");
    }
}
