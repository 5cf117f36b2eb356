//! Asks the API server for protobuf, and converts the answer to JSON. kube's client and our types read only JSON
//! (docs/adr/0027-nodes-come-as-protobuf.md).

pub mod schema;
#[cfg(test)]
mod tests;
mod to_json;
mod wire;

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use futures::{TryStreamExt, stream};
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use std::error::Error;
use to_json::{event, object};

/// If a server or a proxy has no protobuf for an object, it answers with JSON.
const EITHER: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf,application/json");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Content type of one object or one list.
const ONE: &str = "application/vnd.kubernetes.protobuf";
/// Content type of watch events. Four bytes before each event give its length.
/// Source: k8s.io/apimachinery v0.36.3 pkg/runtime/serializer/protobuf/protobuf.go `LengthDelimitedFramer`.
const EVENTS: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Asks for protobuf, if nodewhy can read it and the request names no format.
pub fn ask<B>(request: &mut Request<B>) {
    if request.method() == Method::GET && schema::PATHS.contains(&request.uri().path()) {
        request.headers_mut().entry(ACCEPT).or_insert(EITHER);
    }
}

/// The answer as JSON, in whatever format it came.
pub fn answer<B>(answer: Response<B>) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let (mut head, body) = answer.into_parts();
    let body = Body::new(body);
    let content = head.headers.get(CONTENT_TYPE).and_then(|content| content.to_str().ok()).unwrap_or_default();
    let body = match content {
        ONE => Body::from_stream(stream::once(async { to_bytes(body, usize::MAX).await.map(|whole| object(&whole)) })),
        EVENTS => {
            let mut unread = Vec::new();
            Body::from_stream(body.into_data_stream().map_ok(move |chunk| {
                unread.extend_from_slice(&chunk);
                lines(&mut unread)
            }))
        }
        _ => return Response::from_parts(head, body),
    };
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, JSON);
    Response::from_parts(head, body)
}

/// Removes the complete events, and returns one line of JSON for each.
fn lines(unread: &mut Vec<u8>) -> Vec<u8> {
    let (mut rest, mut lines) = (unread.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let Some((frame, after)) =
            usize::try_from(u32::from_be_bytes(*length)).ok().and_then(|length| after.split_at_checked(length))
        else {
            break;
        };
        event(frame, &mut lines);
        lines.push(b'\n');
        rest = after;
    }
    let read = unread.len() - rest.len();
    unread.drain(..read);
    lines
}
