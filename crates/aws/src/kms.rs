//! KMS: the state of a key, and who may use it. JSON in, JSON out.

use super::policy;
use super::questions::Call;
use super::transport::{CallFailure, Service, Transport};
use chrono::{DateTime, Utc};
use engine::objects::{Answer, KeyUsers, KmsKey};
use serde::Deserialize;
use serde_json::json;

/// Pages of grants that are read, of 100 each.
const PAGES: usize = 10;

pub async fn key(transport: &mut Transport, id: &str) -> Result<Answer, CallFailure> {
    let key = match transport.ask::<Described>(Call::DescribeKey, Service::Kms, &json!({ "KeyId": id })).await {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        described => described?.key_metadata,
    };
    // Seconds, with a fraction.
    #[expect(clippy::cast_possible_truncation, reason = "the second is enough")]
    let deletion = key.deletion_date.and_then(|at| DateTime::<Utc>::from_timestamp(at as i64, 0));
    Ok(Answer::Key(KmsKey { state: key.key_state, deletion, arn: key.arn }))
}

/// Whom the key's policy and its grants name. The call that failed comes with the failure.
pub async fn users(transport: &mut Transport, arn: &str) -> Result<Answer, (Call, CallFailure)> {
    let of = |call| move |failure| (call, failure);
    let asked = json!({"KeyId": arn, "PolicyName": "default"});
    let found: Policy =
        transport.ask(Call::GetKeyPolicy, Service::Kms, &asked).await.map_err(of(Call::GetKeyPolicy))?;
    let unreadable = || CallFailure::Unanswered("the key policy cannot be read".to_owned());
    let mut principals = policy::allowed(&found.policy).ok_or_else(unreadable).map_err(of(Call::GetKeyPolicy))?;
    let mut asked = json!({"KeyId": arn, "Limit": 100});
    for _ in 0..PAGES {
        let page: GrantPage =
            transport.ask(Call::ListGrants, Service::Kms, &asked).await.map_err(of(Call::ListGrants))?;
        principals.extend(page.grants.into_iter().map(|grant| grant.grantee_principal));
        match page.next_marker.filter(|_| page.truncated) {
            Some(marker) => asked["Marker"] = marker.into(),
            None => return Ok(Answer::KeyUsers(KeyUsers { principals: principals.into_iter().collect() })),
        }
    }
    Err((Call::ListGrants, CallFailure::Unanswered(format!("the key has more than {} grants", PAGES * 100))))
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
    arn: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Policy {
    policy: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GrantPage {
    #[serde(default)]
    grants: Vec<Grant>,
    next_marker: Option<String>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Grant {
    #[serde(default)]
    grantee_principal: String,
}
