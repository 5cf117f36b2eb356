//! How long the API server asks clients to wait. Flow control asks in a header only, and its answer is no Status.
//! Source: kubernetes v1.36.3 staging/src/k8s.io/apiserver pkg/server/filters/priority-and-fairness.go
//! `tooManyRequests`.

use http::header::RETRY_AFTER;
use http::{Response, StatusCode};
use kube::Client;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The end of that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct RetryAfter(Arc<Mutex<Option<Instant>>>);

impl RetryAfter {
    /// A client that looks for the header in every answer.
    pub(super) fn heeding(&self, client: Client) -> Client {
        let namespace = client.default_namespace().to_owned();
        let heard = self.clone();
        let service = tower::service_fn(move |request| {
            let (client, heard) = (client.clone(), heard.clone());
            async move {
                let answer = client.send(request).await?;
                heard.hear(&answer);
                Ok::<_, kube::Error>(answer)
            }
        });
        Client::new(service, namespace)
    }

    fn hear<B>(&self, answer: &Response<B>) {
        if !matches!(answer.status(), StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return;
        }
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(until) = seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds))) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *known = known.max(Some(until));
        }
    }

    /// How much of that wait is left. Only the first call returns it.
    pub(super) fn take(&self, now: Instant) -> Option<Duration> {
        let until = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(until.saturating_duration_since(now))
    }
}
