//! One signed request and its answer: where AWS is, who asks, how fast, how long, and what a refusal means.

use super::questions::Call;
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderValue, Method, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use readers::source_text;
use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_core::{Context, FileRead, HttpSend, OsEnv, Signer};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

/// For one answer.
pub const TIMEOUT: Duration = Duration::from_secs(10);
/// For the answer of a link-local address: outside of AWS there is none.
const TIMEOUT_LOCAL: Duration = Duration::from_secs(2);
/// For all tries to get credentials.
const TIMEOUT_CREDENTIALS: Duration = Duration::from_secs(15);
/// Of a throttled or failing call; the first wait, doubled each time.
const TRIES: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Between two calls.
const SPACING: Duration = Duration::from_millis(100);
/// An answer may be so long. Consoles are 64 KiB, lists come in pages.
const LONGEST: usize = 8 << 20;

/// What RFC 3986 leaves as it is, which is what a signature expects.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes one value of a query, a form or a path.
pub fn encode(value: &str) -> String {
    utf8_percent_encode(value, &RESERVED).to_string()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    Ec2,
    Eks,
    Iam,
    Kms,
    Quotas,
}

impl Service {
    const fn name(self) -> &'static str {
        match self {
            Self::Ec2 => "ec2",
            Self::Eks => "eks",
            Self::Iam => "iam",
            Self::Kms => "kms",
            Self::Quotas => "servicequotas",
        }
    }

    /// What the actions of a service that speaks JSON are called by.
    /// Source: botocore 1.44.5 data/{kms/2014-11-01,service-quotas/2019-06-24}/service-2.json: targetPrefix,
    /// jsonVersion.
    const fn target(self) -> Option<&'static str> {
        match self {
            Self::Kms => Some("TrentService"),
            Self::Quotas => Some("ServiceQuotasV20190624"),
            Self::Ec2 | Self::Eks | Self::Iam => None,
        }
    }

    /// Region of the signature, and address. IAM has one for each partition.
    /// Source: botocore 1.44.5 data/endpoints.json.
    fn place(self, region: &str) -> (&str, String) {
        let china = region.starts_with("cn-");
        let suffix = if china { "amazonaws.com.cn" } else { "amazonaws.com" };
        match self {
            Self::Iam if china => ("cn-north-1", format!("https://iam.cn-north-1.{suffix}")),
            Self::Iam if region.starts_with("us-gov-") => ("us-gov-west-1", format!("https://iam.us-gov.{suffix}")),
            Self::Iam => ("us-east-1", format!("https://iam.{suffix}")),
            Self::Ec2 | Self::Eks | Self::Kms | Self::Quotas => {
                (region, format!("https://{}.{region}.{suffix}", self.name()))
            }
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallFailure {
    /// IAM denies the action.
    #[error("{0}")]
    Denied(String),
    /// There is no such thing.
    #[error("{0}")]
    Absent(String),
    /// AWS does not take the credentials, or there are none.
    #[error("{0}")]
    Credentials(String),
    #[error("no more calls in this minute")]
    Budget,
    /// No answer in time, or none at all, or too many calls after all tries: the next will fare no better.
    #[error("{0}")]
    Down(String),
    /// An answer that cannot be read, or an error of AWS about this one thing.
    #[error("{0}")]
    Unanswered(String),
    /// Too many calls, or AWS is ill: worth another try.
    #[error("{0}")]
    Busy(String),
}

type Http = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The way to AWS.
pub struct Transport {
    http: Http,
    signer: Signer<Credential>,
    region: String,
    endpoint: Option<Uri>,
    budget: Budget,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// A call before it is signed.
#[derive(Debug)]
pub struct Unsigned {
    pub call: Call,
    pub service: Service,
    pub method: Method,
    /// Path and query, encoded once.
    pub path: String,
    /// The body: a form, or JSON.
    pub form: String,
}

impl Transport {
    /// Nothing is asked yet.
    pub fn new(region: String, endpoint: Option<Uri>, calls_per_minute: usize) -> std::io::Result<Self> {
        let connector = HttpsConnectorBuilder::new().with_native_roots()?.https_or_http().enable_http1().build();
        let http: Http = Client::builder(TokioExecutor::new()).build(connector);
        let sender = Sender { http: http.clone(), endpoint: endpoint.clone() };
        let context = Context::new().with_env(OsEnv).with_file_read(Files).with_http_send(sender);
        let signer = Signer::new(context, DefaultCredentialProvider::new(), RequestSigner::new("ec2", &region));
        Ok(Self { http, signer, region, endpoint, budget: Budget::new(calls_per_minute) })
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// Sends a call, and once more where AWS is busy.
    pub async fn send(&mut self, unsigned: &Unsigned) -> Result<Bytes, CallFailure> {
        let mut wait = FIRST_WAIT;
        for again in 1.. {
            self.budget.take().await?;
            tracing::debug!(action = unsigned.call.action(), "asks AWS");
            match self.once(unsigned).await {
                Err(CallFailure::Busy(why)) if again >= TRIES => return Err(CallFailure::Down(why)),
                Err(CallFailure::Busy(_)) => sleep(wait + jitter(wait)).await,
                answer => return answer,
            }
            wait *= 2;
        }
        Err(CallFailure::Budget)
    }

    /// Asks a service that takes JSON and answers in JSON.
    pub async fn ask<T: DeserializeOwned>(
        &mut self,
        call: Call,
        service: Service,
        body: &Value,
    ) -> Result<T, CallFailure> {
        let unsigned = Unsigned { call, service, method: Method::POST, path: "/".to_owned(), form: body.to_string() };
        let answer = self.send(&unsigned).await?;
        serde_json::from_slice(&answer)
            .map_err(|error| CallFailure::Unanswered(format!("the answer cannot be read: {error}")))
    }

    async fn once(&self, unsigned: &Unsigned) -> Result<Bytes, CallFailure> {
        let request = self.sign(unsigned).await?;
        let response = timeout(TIMEOUT, fetch(&self.http, request)).await;
        let response = response
            .map_err(|_| CallFailure::Down(format!("no answer within {} s", TIMEOUT.as_secs())))?
            .map_err(CallFailure::Down)?;
        if response.status().is_success() { Ok(response.into_body()) } else { Err(refusal(&response)) }
    }

    async fn sign(&self, unsigned: &Unsigned) -> Result<Request<Full<Bytes>>, CallFailure> {
        let bad = |error: &dyn fmt::Display| CallFailure::Unanswered(format!("no request can be made: {error}"));
        let (region, address) = unsigned.service.place(&self.region);
        let base = self.endpoint.as_ref().map_or(address, |uri| uri.to_string().trim_end_matches('/').to_owned());
        let mut request = Request::builder().method(unsigned.method.clone()).uri(format!("{base}{}", unsigned.path));
        // The signer signs this header as the hash of the body.
        request = request.header("x-amz-content-sha256", reqsign_core::hash::hex_sha256(unsigned.form.as_bytes()));
        if let Some(target) = unsigned.service.target() {
            let action = unsigned.call.action().rsplit(':').next().unwrap_or_default();
            request = request.header("x-amz-target", format!("{target}.{action}"));
            request = request.header(header::CONTENT_TYPE, "application/x-amz-json-1.1");
        } else if unsigned.method == Method::POST {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8");
        }
        let request = request.body(Full::new(Bytes::from(unsigned.form.clone()))).map_err(|e| bad(&e))?;
        let (mut parts, body) = request.into_parts();
        let sent = parts.uri.clone();
        // All services but S3 sign the path encoded twice.
        let path = unsigned.path.split('?').next().unwrap_or_default();
        let query = unsigned.path.strip_prefix(path).unwrap_or_default();
        parts.uri = format!("{base}{}{query}", path.replace('%', "%25")).parse().map_err(|e| bad(&e))?;
        let signer = self.signer.clone().with_request_signer(RequestSigner::new(unsigned.service.name(), region));
        match timeout(TIMEOUT_CREDENTIALS, signer.sign(&mut parts, None)).await {
            Ok(Ok(())) => {}
            // The cause may quote what STS or a file said; its kind is enough.
            Ok(Err(_)) => {
                return Err(CallFailure::Credentials(
                    "no credentials: neither the environment, a web identity, Pod Identity, the shared files nor the \
                     instance has valid ones"
                        .to_owned(),
                ));
            }
            Err(_) => return Err(CallFailure::Credentials("no credentials in time".to_owned())),
        }
        parts.uri = sent;
        Ok(Request::from_parts(parts, body))
    }
}

/// Not all at the same time: the clock's nanoseconds are as good as dice.
fn jitter(wait: Duration) -> Duration {
    wait.mul_f64(f64::from(Utc::now().timestamp_subsec_nanos() % 1000) / 2000.0)
}

async fn fetch(http: &Http, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, String> {
    let response = http.request(request).await.map_err(|error| {
        let causes = std::iter::successors(std::error::Error::source(&error), |e| e.source());
        causes.fold("AWS cannot be reached".to_owned(), |all, cause| format!("{all}: {cause}"))
    })?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, LONGEST).collect().await.map_err(|error| format!("the answer broke off: {error}"))?;
    Ok(Response::from_parts(parts, body.to_bytes()))
}

/// What an answer that is no success means.
///
/// EC2 and IAM write `<Code>` and `<Message>`, EKS a header and `message`, KMS and Service Quotas `__type` and
/// `message`.
fn refusal(response: &Response<Bytes>) -> CallFailure {
    let body = String::from_utf8_lossy(response.body());
    let element = |name: &str| {
        body.split_once(&format!("<{name}>")).and_then(|(_, rest)| rest.split('<').next()).map(str::to_owned)
    };
    let json: serde_json::Value = serde_json::from_slice(response.body()).unwrap_or_default();
    let field = |names: [&str; 3]| names.iter().find_map(|name| json.get(*name)?.as_str().map(str::to_owned));
    let header = response.headers().get("x-amzn-errortype").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let code = header.or_else(|| field(["__type", "code", "Code"])).or_else(|| element("Code")).unwrap_or_default();
    // `com.amazonaws.eks#ResourceNotFoundException:http://…`
    let code = code.split(':').next().unwrap_or_default().rsplit('#').next().unwrap_or_default().to_owned();
    let message = field(["message", "Message", "errorMessage"]).or_else(|| element("Message")).unwrap_or_default();
    // EC2 adds a long cipher text, for who may decode it.
    let message = message.split("Encoded authorization failure").next().unwrap_or_default().trim();
    let message: String = source_text::mask(message).chars().take(300).collect();
    let status = response.status();
    let said = match (code.is_empty(), message.is_empty()) {
        (true, _) => format!("HTTP {status}"),
        (false, true) => code.clone(),
        (false, false) => format!("{code}: {message}"),
    };
    match code.as_str() {
        "UnauthorizedOperation" | "AccessDenied" | "AccessDeniedException" => CallFailure::Denied(said),
        "ResourceNotFoundException" | "NoSuchResourceException" | "NoSuchEntity" | "NotFoundException" => {
            CallFailure::Absent(said)
        }
        code if code.ends_with(".NotFound") => CallFailure::Absent(said),
        "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "RequestExpired"
        | "InvalidClientTokenId"
        | "UnrecognizedClientException"
        | "SignatureDoesNotMatch"
        | "InvalidSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "OptInRequired" => CallFailure::Credentials(said),
        "RequestLimitExceeded"
        | "Throttling"
        | "ThrottlingException"
        | "TooManyRequestsException"
        | "Unavailable"
        | "InternalError" => CallFailure::Busy(said),
        _ if status.as_u16() == 429 || status.is_server_error() => CallFailure::Busy(said),
        _ => CallFailure::Unanswered(said),
    }
}

/// Calls in a minute, and the least time between two.
#[derive(Debug)]
struct Budget {
    calls: usize,
    sent: VecDeque<Instant>,
}

impl Budget {
    fn new(calls: usize) -> Self {
        Self { calls, sent: VecDeque::new() }
    }

    async fn take(&mut self) -> Result<(), CallFailure> {
        if let Some(last) = self.sent.back() {
            sleep(SPACING.saturating_sub(last.elapsed())).await;
        }
        while self.sent.front().is_some_and(|first| first.elapsed() >= Duration::from_mins(1)) {
            self.sent.pop_front();
        }
        if self.sent.len() >= self.calls {
            return Err(CallFailure::Budget);
        }
        self.sent.push_back(Instant::now());
        Ok(())
    }
}

/// How the credentials chain reads files.
#[derive(Debug)]
struct Files;

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let unreadable =
            |error| reqsign_core::Error::unexpected("a file of credentials cannot be read").with_source(error);
        std::fs::read(path).map_err(unreadable)
    }
}

/// How the credentials chain asks STS, the Pod Identity agent and the instance's metadata.
#[derive(Debug)]
struct Sender {
    http: Http,
    endpoint: Option<Uri>,
}

impl HttpSend for Sender {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        let (mut parts, body) = request.into_parts();
        let host = parts.uri.host().unwrap_or_default().to_owned();
        // The endpoint that replaces AWS's stands for STS too.
        if let Some(endpoint) = self.endpoint.as_ref().filter(|_| host.starts_with("sts.")) {
            let mut uri = parts.uri.into_parts();
            (uri.scheme, uri.authority) = (endpoint.scheme().cloned(), endpoint.authority().cloned());
            parts.uri = Uri::from_parts(uri)
                .map_err(|error| reqsign_core::Error::unexpected("no address").with_source(error))?;
            if let Some(authority) = endpoint.authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok()) {
                parts.headers.insert(header::HOST, authority);
            }
        }
        let limit = if host.starts_with("169.254.") || host.starts_with("[fd00:") { TIMEOUT_LOCAL } else { TIMEOUT };
        let answer = timeout(limit, fetch(&self.http, Request::from_parts(parts, Full::new(body)))).await;
        answer
            .map_err(|_| reqsign_core::Error::unexpected("no answer in time"))?
            .map_err(reqsign_core::Error::unexpected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, header: Option<&str>, body: &str) -> CallFailure {
        let mut response = Response::builder().status(status);
        if let Some(code) = header {
            response = response.header("x-amzn-errortype", code);
        }
        refusal(&response.body(Bytes::from(body.to_owned())).unwrap())
    }

    #[test]
    fn each_service_refuses_in_its_own_words() {
        let ec2 = |code: &str| {
            format!(
                "<?xml version=\"1.0\"?><Response><Errors><Error><Code>{code}</Code><Message>m</Message></Error></Errors></Response>"
            )
        };
        assert_eq!(
            answered(403, None, &ec2("UnauthorizedOperation")),
            CallFailure::Denied("UnauthorizedOperation: m".to_owned())
        );
        assert_eq!(
            answered(400, None, &ec2("InvalidInstanceID.NotFound")),
            CallFailure::Absent("InvalidInstanceID.NotFound: m".to_owned())
        );
        assert_eq!(
            answered(503, None, &ec2("RequestLimitExceeded")),
            CallFailure::Busy("RequestLimitExceeded: m".to_owned())
        );
        let eks = r#"{"message":"User is not authorized"}"#;
        assert_eq!(
            answered(403, Some("AccessDeniedException:http://x/"), eks),
            CallFailure::Denied("AccessDeniedException: User is not authorized".to_owned())
        );
        assert_eq!(
            answered(404, Some("ResourceNotFoundException"), "{}"),
            CallFailure::Absent("ResourceNotFoundException".to_owned())
        );
        assert_eq!(
            answered(403, None, r#"{"__type":"com.amazon#ExpiredTokenException"}"#),
            CallFailure::Credentials("ExpiredTokenException".to_owned())
        );
        assert_eq!(answered(502, None, "<html>"), CallFailure::Busy("HTTP 502 Bad Gateway".to_owned()));
        assert_eq!(answered(418, None, "\u{0}"), CallFailure::Unanswered("HTTP 418 I'm a teapot".to_owned()));
    }

    #[test]
    fn the_cipher_text_of_a_denial_is_left_out() {
        let said = answered(
            403,
            None,
            "<Code>UnauthorizedOperation</Code><Message>You are not authorized. Encoded authorization failure message: \
             abc</Message>",
        );
        assert_eq!(said, CallFailure::Denied("UnauthorizedOperation: You are not authorized.".to_owned()));
    }

    #[test]
    fn iam_has_one_address_for_each_partition() {
        assert_eq!(Service::Iam.place("eu-west-1"), ("us-east-1", "https://iam.amazonaws.com".to_owned()));
        assert_eq!(Service::Iam.place("cn-northwest-1").0, "cn-north-1");
        assert_eq!(
            Service::Ec2.place("cn-north-1"),
            ("cn-north-1", "https://ec2.cn-north-1.amazonaws.com.cn".to_owned())
        );
        assert_eq!(Service::Eks.place("eu-west-1").1, "https://eks.eu-west-1.amazonaws.com");
    }

    #[tokio::test(start_paused = true)]
    async fn the_budget_is_that_of_a_minute() {
        let mut budget = Budget::new(3);
        for _ in 0..3 {
            assert_eq!(budget.take().await, Ok(()));
        }
        assert_eq!(budget.take().await, Err(CallFailure::Budget));
        sleep(Duration::from_secs(61)).await;
        assert_eq!(budget.take().await, Ok(()));
    }
}
