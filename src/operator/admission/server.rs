//! The webhook on a port of its own. Whoever reaches the port may ask, so what all clients together may take is
//! limited.

use super::certificates::{self, ServedCertificate};
use super::{Deny, Shown, review};
use crate::kube_client::clock::Clock;
use crate::operator::connections::{self, Limits};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The largest body. An object has at most 1.5 MiB, and a review may have it twice.
/// Source: etcd server/embed/config.go `DefaultMaxRequestBytes` (v3.6).
const BODY: usize = 3 * 1024 * 1024;
/// Reviews that are read and judged at once.
const AT_ONCE: usize = 8;
/// An answer comes within this time: the API server waits for two seconds.
const WITHIN: Duration = Duration::from_millis(1_500);

/// An API server opens one connection for each request that it has under way, and keeps some.
const LIMITS: Limits = Limits { connections: 256, lasts: Some(Duration::from_mins(5)) };

/// What all reviews need.
pub(super) struct Reviewer {
    shown: Shown,
    clock: Arc<Clock>,
    deny: Deny,
    permits: Arc<Semaphore>,
}

impl Reviewer {
    pub(super) fn new(shown: Shown, clock: Arc<Clock>, deny: Deny) -> Self {
        Self { shown, clock, deny, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    fn answer(&self, body: &[u8]) -> Option<String> {
        let surroundings = self.shown.borrow().clone();
        review::answer(body, surroundings.as_deref(), self.deny, self.clock.now())
    }
}

/// Serves until `stop` resolves.
pub(super) async fn serve(
    listener: std::net::TcpListener,
    served: Arc<ServedCertificate>,
    reviewer: Reviewer,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let tls = certificates::tls(served).map_err(io::Error::other)?;
    connections::serve_tls(TcpListener::from_std(listener)?, tls, router(reviewer), LIMITS, stop).await;
    Ok(())
}

fn router(reviewer: Reviewer) -> Router {
    Router::new().route("/validate", post(validate)).with_state(Arc::new(reviewer))
}

/// Every status but 200 lets the object pass too: the API server ignores a webhook that fails (failurePolicy).
async fn validate(State(reviewer): State<Arc<Reviewer>>, request: Request) -> Response {
    match timeout(WITHIN, review(reviewer, request)).await {
        Ok(Ok(answer)) => ([(header::CONTENT_TYPE, "application/json")], answer).into_response(),
        Ok(Err(refusal)) => refusal.into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "too many reviews at once\n").into_response(),
    }
}

async fn review(reviewer: Arc<Reviewer>, request: Request) -> Result<String, (StatusCode, &'static str)> {
    // Before the body is read, so that few bodies are held at once.
    let permit = Arc::clone(&reviewer.permits).acquire_owned().await;
    let permit = permit.map_err(|_| (StatusCode::SERVICE_UNAVAILABLE, "nodewhy is shutting down\n"))?;
    let body = axum::body::to_bytes(request.into_body(), BODY).await;
    let body = body.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, "too large, or cut off\n"))?;
    judge(reviewer, body, permit).await.ok_or((StatusCode::BAD_REQUEST, "not an AdmissionReview\n"))
}

/// Judges beside the thread that serves. After a panic the object passes.
async fn judge(reviewer: Arc<Reviewer>, body: Bytes, permit: OwnedSemaphorePermit) -> Option<String> {
    let judged = body.clone();
    let answer = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        reviewer.answer(&judged)
    });
    answer.await.unwrap_or_else(|_| review::allowed(&body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use tokio::sync::watch;
    use tower::ServiceExt;

    async fn status(body: impl Into<Body>) -> StatusCode {
        let (_shows, shown) = watch::channel(None);
        let reviewer = Reviewer::new(shown, Arc::new(Clock::default()), Deny::Certain);
        let request = Request::post("/validate").body(body.into()).unwrap();
        router(reviewer).oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn garbage_and_large_bodies_are_client_errors() {
        assert_eq!(status(r#"{"request": {"uid": "1"}}"#).await, StatusCode::OK);
        assert_eq!(status("garbage").await, StatusCode::BAD_REQUEST);
        assert_eq!(status(vec![b' '; BODY + 1]).await, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_ends_its_body_gets_an_answer_in_time() {
        let endless = Body::from_stream(futures::stream::pending::<Result<Bytes, io::Error>>());
        assert_eq!(status(endless).await, StatusCode::SERVICE_UNAVAILABLE);
    }
}
