//! Between a client and the API server: a proxy that stops to forward, answers for the server, breaks connections off,
//! or tells another time.
//!
//! The client speaks plain HTTP to it, so that an answer can be told from the next one.

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta};
use futures::{StreamExt, stream};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use testkit::control_plane::ControlPlane;
use tokio::sync::watch;

/// What becomes of requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Traffic {
    Flows,
    /// Nothing comes any more, and nothing is closed. What was sent meanwhile is never answered.
    Silent,
    /// The API server refuses everything, with this code.
    Refused(u16),
    /// Requests whose address contains this wait.
    Held(&'static str),
    /// They are carried out, and their answers wait.
    Late(&'static str),
}

#[derive(Debug, Clone)]
struct Weather {
    traffic: Traffic,
    /// How often all that was open went silent.
    silences: u32,
    /// How often all that was open was broken off.
    cuts: u32,
    /// How far the time that answers tell is ahead of the API server's.
    ahead: TimeDelta,
}

pub struct Proxy {
    port: u16,
    weather: watch::Sender<Weather>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: AtomicU32,
    held: AtomicU32,
}

#[derive(Clone)]
struct Line {
    upstream: kube::Client,
    weather: watch::Receiver<Weather>,
    seen: Arc<Seen>,
}

impl Proxy {
    /// It passes the client's own token on.
    pub async fn start(control_plane: &ControlPlane) -> Self {
        Self::with_auth(control_plane, |auth| *auth = AuthInfo::default()).await
    }

    /// It gives every client the administrator's rights: client-go sends no token over plain HTTP.
    pub async fn for_administrator(control_plane: &ControlPlane) -> Self {
        Self::with_auth(control_plane, |_| ()).await
    }

    async fn with_auth(control_plane: &ControlPlane, change: impl FnOnce(&mut AuthInfo)) -> Self {
        let kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig()).expect("the administrator's");
        let mut config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.expect("a context");
        change(&mut config.auth_info);
        config.default_retry = false;
        let (weather, seen_weather) =
            watch::channel(Weather { traffic: Traffic::Flows, silences: 0, cuts: 0, ahead: TimeDelta::zero() });
        let seen = Arc::new(Seen::default());
        let upstream = kube::Client::try_from(config).expect("a client");
        let line = Line { upstream, weather: seen_weather, seen: Arc::clone(&seen) };
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(forward).with_state(line)).await });
        Self { port, weather, seen }
    }

    /// The kubeconfig with the proxy in the API server's place.
    pub fn kubeconfig(&self, direct: &Path) -> PathBuf {
        let mut kubeconfig: Value = serde_json::from_slice(&std::fs::read(direct).expect("it is there")).expect("JSON");
        kubeconfig["clusters"][0]["cluster"] = json!({ "server": format!("http://127.0.0.1:{}", self.port) });
        let path = direct.with_extension("proxy");
        std::fs::write(&path, kubeconfig.to_string()).expect("the folder is writable");
        path
    }

    pub fn set(&self, traffic: Traffic) {
        self.weather.send_modify(|weather| {
            weather.silences += u32::from(traffic == Traffic::Silent);
            weather.traffic = traffic;
        });
    }

    /// Requests so far.
    pub fn requests(&self) -> u32 {
        self.seen.requests.load(Ordering::Relaxed)
    }

    /// Requests that had to wait so far.
    pub fn held(&self) -> u32 {
        self.seen.held.load(Ordering::Relaxed)
    }

    /// From now on the time that answers tell is so far ahead of the API server's.
    pub fn put_clock_ahead(&self, by: TimeDelta) {
        self.weather.send_modify(|weather| weather.ahead = by);
    }

    /// Breaks off every answer that is under way; watches are.
    pub fn cut(&self) {
        self.weather.send_modify(|weather| weather.cuts += 1);
    }
}

async fn forward(State(mut line): State<Line>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let address = parts.uri.to_string();
    line.seen.requests.fetch_add(1, Ordering::Relaxed);
    let now = loop {
        let now = line.weather.borrow_and_update().clone();
        match now.traffic {
            Traffic::Flows | Traffic::Late(_) => break now,
            Traffic::Held(what) if !address.contains(what) => break now,
            Traffic::Held(_) => {
                line.seen.held.fetch_add(1, Ordering::Relaxed);
                changed(&mut line.weather).await;
            }
            Traffic::Silent => return std::future::pending().await,
            Traffic::Refused(code) => return refusal(code),
        }
    };
    let body = axum::body::to_bytes(body, usize::MAX).await.expect("nodewhy sends all of it");
    let request = http::Request::from_parts(parts, kube::client::Body::from(body.to_vec()));
    let answer = match line.upstream.send(request).await {
        Ok(answer) => answer,
        Err(error) => return (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    while matches!(line.weather.borrow_and_update().traffic, Traffic::Late(what) if address.contains(what)) {
        line.seen.held.fetch_add(1, Ordering::Relaxed);
        changed(&mut line.weather).await;
    }
    let (mut parts, body) = answer.into_parts();
    for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
        parts.headers.remove(name);
    }
    if let Some(date) = parts.headers.get_mut(header::DATE) {
        let told = date.to_str().ok().and_then(|date| DateTime::parse_from_rfc2822(date).ok()).expect("a date");
        let told = (told + now.ahead).format("%a, %d %b %Y %H:%M:%S GMT").to_string();
        *date = HeaderValue::from_str(&told).expect("ASCII");
    }
    let chunks =
        stream::unfold((Body::new(body).into_data_stream(), line.weather), move |(mut chunks, mut weather)| {
            let (silences, cuts) = (now.silences, now.cuts);
            async move {
                let over = async {
                    while {
                        let now = weather.borrow_and_update();
                        now.silences == silences && now.cuts == cuts
                    } {
                        changed(&mut weather).await;
                    }
                };
                let chunk = tokio::select! {
                    biased;
                    () = over => None,
                    chunk = chunks.next() => Some(chunk),
                };
                if chunk.is_none() {
                    while weather.borrow_and_update().cuts == cuts {
                        changed(&mut weather).await;
                    }
                }
                let chunk = chunk.unwrap_or_else(|| Some(Err(axum::Error::new(std::io::Error::other("broken off")))));
                chunk.map(|chunk| (chunk, (chunks, weather)))
            }
        });
    Response::from_parts(parts, Body::from_stream(chunks))
}

/// For ever, where the test is over.
async fn changed(weather: &mut watch::Receiver<Weather>) {
    if weather.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// As the API server's flow control or its failing storage say it.
fn refusal(code: u16) -> Response {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "message": "Too many requests, please try again later.", "reason": "TooManyRequests",
    });
    let mut response =
        (StatusCode::from_u16(code).expect("a code"), [(header::CONTENT_TYPE, "application/json")], status.to_string())
            .into_response();
    if code == 429 {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
