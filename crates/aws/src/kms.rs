//! KMS: the state of a key. JSON in, JSON out.

use super::questions::Call;
use super::transport::{CallFailure, Service, Transport, Unsigned};
use chrono::{DateTime, Utc};
use engine::objects::{Answer, KmsKey};
use http::Method;
use serde::Deserialize;
use serde_json::json;

pub async fn key(transport: &mut Transport, id: &str) -> Result<Answer, CallFailure> {
    let unsigned = Unsigned {
        call: Call::DescribeKey,
        service: Service::Kms,
        method: Method::POST,
        path: "/".to_owned(),
        form: json!({ "KeyId": id }).to_string(),
    };
    let answer = match transport.send(&unsigned).await {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        answer => answer?,
    };
    let Described { key_metadata: key } = serde_json::from_slice(&answer)
        .map_err(|error| CallFailure::Unanswered(format!("the answer cannot be read: {error}")))?;
    // Seconds, with a fraction.
    #[expect(clippy::cast_possible_truncation, reason = "the second is enough")]
    let deletion = key.deletion_date.and_then(|at| DateTime::<Utc>::from_timestamp(at as i64, 0));
    Ok(Answer::Key(KmsKey { state: key.key_state, deletion }))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Described {
    key_metadata: KeyMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyMetadata {
    #[serde(default)]
    key_state: String,
    #[serde(default)]
    deletion_date: Option<f64>,
}
