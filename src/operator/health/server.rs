//! Metrics and health on one port.

use crate::operator::connections::{self, Limits};
use crate::operator::health::readiness::Readiness;
use crate::operator::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

/// The operator's loop gives a sign of life every few seconds, and after every subject that it judges. If it has given
/// none for this long, it is stuck, and a restart fixes it.
const ALIVE: Duration = Duration::from_mins(1);

/// Probes and scrapes are short, and few at once.
const LIMITS: Limits = Limits { connections: 64, lasts: Some(Duration::from_secs(30)) };

/// The state that the probes read.
#[derive(Debug)]
pub struct Health {
    readiness: Mutex<Readiness>,
    last_turn: Mutex<Instant>,
}

impl Health {
    pub fn new(readiness: Readiness) -> Self {
        Self { readiness: Mutex::new(readiness), last_turn: Mutex::new(Instant::now()) }
    }

    /// Looks at the readiness, or changes it.
    pub fn readiness<T>(&self, f: impl FnOnce(&mut Readiness) -> T) -> T {
        f(&mut self.readiness.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The operator's loop gives a sign of life.
    pub fn turn(&self) {
        *self.last_turn.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_alive(&self) -> bool {
        self.last_turn.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < ALIVE
    }
}

/// Opens the port. Any thread may serve it. If IPv6 is off, `[::]` means every IPv4 address.
pub async fn bind(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.is_ipv6() && address.ip().is_unspecified() => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }?
    .into_std()
}

/// Serves until `stop` resolves.
pub async fn serve(
    listener: std::net::TcpListener,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(health)
        .merge(Router::new().route("/metrics", get(scrape)).with_state(metrics));
    connections::serve(TcpListener::from_std(listener)?, router, LIMITS, stop).await;
    Ok(())
}

async fn livez(State(health): State<Arc<Health>>) -> Response {
    if health.is_alive() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the operator's loop is stuck\n")
    }
    .into_response()
}

async fn readyz(State(health): State<Arc<Health>>) -> Response {
    let (ready, report) = health.readiness(|readiness| (readiness.is_ready(), readiness.report()));
    (if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, report).into_response()
}

/// OpenMetrics for those who ask for it, as Prometheus does.
async fn scrape(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    const OPENMETRICS: &str = "application/openmetrics-text";
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .any(|accept| accept.to_str().is_ok_and(|accept| accept.contains(OPENMETRICS)));
    let (kind, body) = if accepted {
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", metrics.encode())
    } else {
        ("text/plain; version=0.0.4; charset=utf-8", metrics.encode_plain())
    };
    match body {
        Ok(body) => ([(header::CONTENT_TYPE, kind)], body).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
