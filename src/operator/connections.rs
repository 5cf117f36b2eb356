//! Serves HTTP and HTTPS within limits. A connection costs a file descriptor, and a client that reaches the port may
//! open any number of them.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// A client sends the head of each request within this time.
const HEAD: Duration = Duration::from_secs(10);
/// After an error of the listener, such as no descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

/// What the clients of a port may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Connections that are open at once. One more closes the oldest, so that a client with many keeps no other out.
    pub connections: usize,
    /// How long a connection may last; `None` if answers go on for as long as the client reads.
    pub lasts: Option<Duration>,
}

/// Serves until `stop` resolves.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: Limits, stop: impl Future<Output = ()>) {
    let begin = |stream| connection(stream, router.clone(), limits.lasts);
    accept(listener, limits.connections, begin, stop).await;
}

/// Serves with TLS until `stop` resolves.
pub(super) async fn serve_tls(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let begin = |stream| {
        let (acceptor, router) = (acceptor.clone(), router.clone());
        async move {
            // An error is the client's, or there is no certificate yet.
            if let Ok(Ok(stream)) = timeout(HEAD, acceptor.accept(stream)).await {
                connection(stream, router, limits.lasts).await;
            }
        }
    };
    accept(listener, limits.connections, begin, stop).await;
}

async fn accept<F>(
    listener: TcpListener,
    connections: usize,
    begin: impl Fn(TcpStream) -> F,
    stop: impl Future<Output = ()>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut stop = pin!(stop);
    let mut open = JoinSet::new();
    let mut by_age: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    by_age.retain(|connection| !connection.is_finished());
                    while by_age.len() >= connections && let Some(oldest) = by_age.pop_front() {
                        oldest.abort();
                    }
                    by_age.push_back(open.spawn(begin(stream)));
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

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    lasts: Option<Duration>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    // An error is the client's, and nodewhy serves the next one.
    let Some(lasts) = lasts else {
        let _ = served.await;
        return;
    };
    if timeout(lasts, served.as_mut()).await.is_err() {
        // A request that is under way is answered.
        served.as_mut().graceful_shutdown();
        let _ = timeout(HEAD, served).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use std::net::SocketAddr;
    use std::sync::Arc;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    const LASTS: Duration = Duration::from_secs(30);
    const LIMITS: Limits = Limits { connections: 8, lasts: Some(LASTS) };

    async fn server(router: Router) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve(listener, router, LIMITS, std::future::pending()));
        address
    }

    fn livez() -> Router {
        Router::new().route("/livez", get(|| async { "ok" }))
    }

    async fn request(address: SocketAddr) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n").await.expect("it reads");
        stream
    }

    async fn answer(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer
    }

    #[tokio::test]
    async fn a_client_with_many_connections_keeps_no_probe_out() {
        let address = server(livez()).await;
        let mut idle = Vec::new();
        for _ in 0..50 {
            idle.push(TcpStream::connect(address).await.expect("it listens"));
        }
        let answer = answer(request(address).await).await;
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        // The oldest were closed for the newer ones.
        for stream in &mut idle[..40] {
            let end = stream.read(&mut [0]).await;
            assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
        }
    }

    /// The time is held still only after it is connected, which takes some.
    #[tokio::test]
    async fn a_client_that_sends_no_request_is_closed() {
        let address = server(livez()).await;
        let mut slow = TcpStream::connect(address).await.expect("it listens");
        slow.write_all(b"GET /livez HTTP/1.1\r\nHost: x").await.expect("it reads");
        assert!(answer(request(address).await).await.ends_with("ok"));
        tokio::time::pause();
        let closed = timeout(HEAD * 2, slow.read(&mut [0; 512])).await;
        assert!(closed.is_ok(), "it is still open");
    }

    #[tokio::test]
    async fn a_request_that_is_under_way_is_answered_when_the_time_of_its_connection_is_over() {
        let begun = Arc::new(Notify::new());
        let begins = Arc::clone(&begun);
        let slow = move || async move {
            begins.notify_one();
            sleep(LASTS + HEAD / 2).await;
            "ok"
        };
        let address = server(Router::new().route("/livez", get(slow))).await;
        let stream = request(address).await;
        begun.notified().await;
        tokio::time::pause();
        assert!(answer(stream).await.ends_with("ok"));
    }
}
