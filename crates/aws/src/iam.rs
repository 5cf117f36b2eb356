//! IAM: which role is in an instance profile, and what the role may. Query in, XML out.

use super::ec2;
use super::policy;
use super::questions::Call;
use super::transport::{CallFailure, Service, Transport, Unsigned, encode};
use chrono::{DateTime, Utc};
use engine::objects::{Answer, InstanceProfile, RolePolicies};
use http::Method;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// About the one thing that the parameter names. No role has as many policies as a page of a list holds (100).
/// Source: IAM user guide, "IAM and AWS STS quotas".
async fn get<T: DeserializeOwned>(
    transport: &mut Transport,
    call: Call,
    parameter: &str,
    name: &str,
) -> Result<T, CallFailure> {
    let action = call.action().rsplit(':').next().unwrap_or_default();
    let form = format!("Action={action}&Version=2010-05-08&{parameter}={}", encode(name));
    let unsigned = Unsigned { call, service: Service::Iam, method: Method::POST, path: "/".to_owned(), form };
    ec2::read(&transport.send(&unsigned).await?)
}

pub async fn instance_profile(transport: &mut Transport, name: &str) -> Result<Answer, CallFailure> {
    let found: Response = match get(transport, Call::GetInstanceProfile, "InstanceProfileName", name).await {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        found => found?,
    };
    let role = found.result.instance_profile.roles.member.into_iter().next();
    let trust = role.as_ref().map(|role| percent_decode_str(&role.assume_role_policy_document).decode_utf8_lossy());
    Ok(Answer::InstanceProfile(InstanceProfile {
        role_created: role.as_ref().and_then(|role| role.create_date.parse::<DateTime<Utc>>().ok()),
        ec2_may_assume: trust.and_then(|trust| policy::ec2_may_assume(&trust)),
        role_arn: role.map(|role| role.arn),
    }))
}

/// The call that failed comes with the failure.
pub async fn role_policies(transport: &mut Transport, role: &str) -> Result<Answer, (Call, CallFailure)> {
    let attached = get::<Attached>(transport, Call::ListAttachedRolePolicies, "RoleName", role).await;
    let attached = match attached {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        attached => attached.map_err(|failure| (Call::ListAttachedRolePolicies, failure))?.result.attached_policies,
    };
    let own = get::<Own>(transport, Call::ListRolePolicies, "RoleName", role).await;
    let own = own.map_err(|failure| (Call::ListRolePolicies, failure))?.result.policy_names;
    Ok(Answer::RolePolicies(RolePolicies {
        attached: attached.member.into_iter().map(|policy| policy.policy_arn).collect(),
        inline: own.member,
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
    roles: Members<Role>,
}

/// IAM's lists are `<member>`s.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Members<T> {
    #[serde(default = "Vec::new")]
    member: Vec<T>,
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self { member: Vec::new() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Role {
    arn: String,
    #[serde(default)]
    create_date: String,
    #[serde(default)]
    assume_role_policy_document: String,
}

#[derive(Debug, Deserialize)]
struct Attached {
    #[serde(rename = "ListAttachedRolePoliciesResult")]
    result: AttachedResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AttachedResult {
    attached_policies: Members<AttachedPolicy>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AttachedPolicy {
    policy_arn: String,
}

#[derive(Debug, Deserialize)]
struct Own {
    #[serde(rename = "ListRolePoliciesResult")]
    result: OwnResult,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OwnResult {
    policy_names: Members<String>,
}
