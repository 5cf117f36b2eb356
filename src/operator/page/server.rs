//! The page on a port of its own: the page itself, and when it should be fetched anew.
//!
//! It has no login: who can reach the port may read, which on the loopback interface of a Pod is who has the right to
//! `create` `pods/portforward`.

use super::Reader;
use crate::operator::connections::{self, Limits};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use futures::{Stream, stream};
use std::convert::Infallible;
use std::net::IpAddr;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::sleep;

/// A browser holds one connection open for changes, and a page takes megabytes.
const LIMITS: Limits = Limits { connections: 64, lasts: None };

/// HTTP headers that forbid framing, content sniffing, referrers and caching, in addition to the policy inside the
/// page.
const HEADERS: [(header::HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
];

pub(super) async fn serve(
    listener: std::net::TcpListener,
    wait: mpsc::Sender<Reader>,
    revisions: watch::Receiver<u64>,
) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let router = Router::new()
        .route("/", get(page))
        .with_state(wait)
        .merge(Router::new().route("/changes", get(changes)).with_state(revisions))
        .layer(middleware::from_fn(move |request, next| guarded(is_local, request, next)));
    match TcpListener::from_std(listener) {
        Ok(listener) => connections::serve(listener, router, LIMITS, std::future::pending()).await,
        Err(error) => tracing::warn!(%error, "the page is not served"),
    }
}

/// A name that leads to this machine lets any web page in a browser here read what is served on it (DNS rebinding): on
/// the loopback interface nobody needs a name but `localhost`.
async fn guarded(is_local: bool, request: Request, next: Next) -> Response {
    let answer = if is_local && !names_no_other_host(request.headers()) {
        (StatusCode::FORBIDDEN, "open the page as localhost or as an IP address\n").into_response()
    } else {
        next.run(request).await
    };
    (HEADERS, answer).into_response()
}

fn names_no_other_host(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => host.split(':').next(),
    };
    name.is_some_and(|name| name == "localhost" || name.parse::<IpAddr>().is_ok())
}

async fn page(State(wait): State<mpsc::Sender<Reader>>) -> Response {
    let (reader, page) = oneshot::channel();
    // If the queue is full, the request is rejected and the page goes on.
    let has_room = wait.try_send(reader).is_ok();
    if let Ok(Some(page)) = page.await {
        return Html(page).into_response();
    }
    let why = if has_room { "no verdicts yet: /readyz says why\n" } else { "too many requests for the page at once\n" };
    (StatusCode::SERVICE_UNAVAILABLE, [(header::REFRESH, "2")], why).into_response()
}

/// Sends the present revision, then each new one. Between them only keep-alive messages are sent.
async fn changes(
    State(mut revisions): State<watch::Receiver<u64>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    revisions.mark_changed();
    let told = stream::unfold((revisions, false), async |(mut revisions, has_told)| {
        revisions.changed().await.ok()?;
        if has_told {
            // In an incident the verdicts change machine by machine. One message covers all of them.
            sleep(super::PAUSE).await;
        }
        let revision = *revisions.borrow_and_update();
        Some((Ok(Event::default().data(revision.to_string())), (revisions, true)))
    });
    Sse::new(told).keep_alive(KeepAlive::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let asks = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, header::HeaderValue::from_static(host));
            names_no_other_host(&headers)
        };
        for host in ["localhost", "localhost:8081", "127.0.0.1:8081", "[::1]:8081", "10.0.0.7"] {
            assert!(asks(host), "{host}");
        }
        for host in ["", "evil.example", "localhost.evil.example:8081", "127.0.0.1.evil.example", "[evil]:8081"] {
            assert!(!asks(host), "{host}");
        }
        assert!(!names_no_other_host(&HeaderMap::new()));
    }
}
