//! IAM: which role is in an instance profile. Query in, XML out.

use super::questions::Call;
use super::transport::{CallFailure, Service, Transport, Unsigned, encode};
use chrono::{DateTime, Utc};
use engine::objects::{Answer, InstanceProfile};
use http::Method;
use serde::Deserialize;

pub async fn instance_profile(transport: &mut Transport, name: &str) -> Result<Answer, CallFailure> {
    let form = format!("Action=GetInstanceProfile&Version=2010-05-08&InstanceProfileName={}", encode(name));
    let unsigned = Unsigned {
        call: Call::GetInstanceProfile,
        service: Service::Iam,
        method: Method::POST,
        path: "/".to_owned(),
        form,
    };
    let answer = match transport.send(&unsigned).await {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        answer => answer?,
    };
    let text = String::from_utf8_lossy(&answer);
    let found: Response = quick_xml::de::from_str(&text)
        .map_err(|error| CallFailure::Unanswered(format!("the answer cannot be read: {error}")))?;
    let role = found.result.instance_profile.roles.member.into_iter().next();
    Ok(Answer::InstanceProfile(InstanceProfile {
        role_created: role.as_ref().and_then(|role| role.create_date.parse::<DateTime<Utc>>().ok()),
        role_arn: role.map(|role| role.arn),
    }))
}

#[derive(Debug, Deserialize)]
struct Response {
    #[serde(rename = "GetInstanceProfileResult")]
    result: GetInstanceProfileResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetInstanceProfileResult {
    instance_profile: Profile,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Profile {
    #[serde(default)]
    roles: Roles,
}

#[derive(Debug, Default, Deserialize)]
struct Roles {
    #[serde(default)]
    member: Vec<Role>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Role {
    arn: String,
    #[serde(default)]
    create_date: String,
}
