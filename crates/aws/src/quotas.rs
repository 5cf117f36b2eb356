//! Service Quotas: how much of EC2 the account may have. JSON in, JSON out.

use super::questions::Call;
use super::transport::{CallFailure, Service, Transport};
use engine::objects::{Answer, ServiceQuota};
use serde::Deserialize;
use serde_json::json;

pub async fn quota(transport: &mut Transport, code: &str) -> Result<Answer, CallFailure> {
    let body = json!({"ServiceCode": "ec2", "QuotaCode": code});
    match transport.ask::<Response>(Call::GetServiceQuota, Service::Quotas, &body).await {
        Err(CallFailure::Absent(_)) => Ok(Answer::Absent),
        found => {
            found.map(|Response { quota }| Answer::Quota(ServiceQuota { name: quota.quota_name, value: quota.value }))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Response {
    quota: Quota,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Quota {
    #[serde(default)]
    quota_name: String,
    value: f64,
}
