//! EKS: the cluster and its access entries. REST and JSON.

use super::questions::Call;
use super::transport::{CallFailure, Service, Transport, Unsigned, encode};
use chrono::{DateTime, Utc};
use engine::objects::{AccessEntry, Answer, EksCluster};
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Pages of access entries that are read, of 100 each.
const PAGES: usize = 20;

async fn get<T: DeserializeOwned>(transport: &mut Transport, call: Call, path: String) -> Result<T, CallFailure> {
    let unsigned = Unsigned { call, service: Service::Eks, method: Method::GET, path, form: String::new() };
    let answer = transport.send(&unsigned).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| CallFailure::Unanswered(format!("the answer cannot be read: {error}")))
}

pub async fn cluster(transport: &mut Transport, name: &str) -> Result<Answer, CallFailure> {
    let found: Result<Described, _> =
        get(transport, Call::DescribeCluster, format!("/clusters/{}", encode(name))).await;
    let Described { cluster } = match found {
        Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
        found => found?,
    };
    let network = cluster.resources_vpc_config.unwrap_or_default();
    Ok(Answer::Cluster(EksCluster {
        // Clusters from before access entries have none, which means CONFIG_MAP.
        authentication_mode: Some(
            cluster.access_config.and_then(|c| c.authentication_mode).unwrap_or_else(|| "CONFIG_MAP".to_owned()),
        ),
        version: cluster.version,
        endpoint_public: network.endpoint_public_access,
        endpoint_private: network.endpoint_private_access,
        public_cidrs: network.public_access_cidrs,
        vpc: network.vpc_id.filter(|vpc| !vpc.is_empty()),
        subnets: network.subnet_ids,
        // The control plane's interfaces have both.
        groups: network.cluster_security_group_id.into_iter().chain(network.security_group_ids).collect(),
        ip_family: cluster.kubernetes_network_config.and_then(|c| c.ip_family),
    }))
}

/// The entry of a role by its name: the role that EC2's machines have is of the cluster's own account, so the name is
/// enough. The call that failed comes with the failure.
pub async fn access_entry(transport: &mut Transport, cluster: &str, role: &str) -> Result<Answer, (Call, CallFailure)> {
    let entries = format!("/clusters/{}/access-entries", encode(cluster));
    let mut token = String::new();
    for _ in 0..PAGES {
        let page: Listed = get(transport, Call::ListAccessEntries, format!("{entries}?maxResults=100{token}"))
            .await
            .map_err(|failure| match failure {
                // It is the cluster that is not there.
                CallFailure::Absent(why) => (Call::ListAccessEntries, CallFailure::Unanswered(why)),
                failure => (Call::ListAccessEntries, failure),
            })?;
        let of_role =
            |arn: &&String| arn.split_once(":role/").is_some_and(|(_, path)| path.rsplit('/').next() == Some(role));
        if let Some(arn) = page.access_entries.iter().find(of_role) {
            let found =
                get::<DescribedEntry>(transport, Call::DescribeAccessEntry, format!("{entries}/{}", encode(arn))).await;
            let entry = match found {
                Err(CallFailure::Absent(_)) => return Ok(Answer::Absent),
                found => found.map_err(|failure| (Call::DescribeAccessEntry, failure))?.access_entry,
            };
            return Ok(Answer::AccessEntry(AccessEntry {
                principal_arn: entry.principal_arn,
                type_: entry.type_,
                created: entry.created_at.and_then(time),
            }));
        }
        match page.next_token.filter(|next| !next.is_empty()) {
            Some(next) => token = format!("&nextToken={}", encode(&next)),
            None => return Ok(Answer::Absent),
        }
    }
    Err((
        Call::ListAccessEntries,
        CallFailure::Unanswered(format!("the cluster has more than {} access entries", PAGES * 100)),
    ))
}

/// EKS writes seconds since 1970, with a fraction.
#[expect(clippy::cast_possible_truncation, reason = "seconds of a date, and a cast saturates")]
fn time(seconds: f64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(seconds as i64, 0)
}

#[derive(Debug, Deserialize)]
struct Described {
    cluster: ClusterItem,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClusterItem {
    version: Option<String>,
    access_config: Option<AccessConfig>,
    resources_vpc_config: Option<VpcConfig>,
    kubernetes_network_config: Option<NetworkConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NetworkConfig {
    ip_family: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AccessConfig {
    authentication_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VpcConfig {
    endpoint_public_access: Option<bool>,
    endpoint_private_access: Option<bool>,
    public_access_cidrs: Vec<String>,
    vpc_id: Option<String>,
    subnet_ids: Vec<String>,
    security_group_ids: Vec<String>,
    cluster_security_group_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    access_entries: Vec<String>,
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DescribedEntry {
    access_entry: EntryItem,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryItem {
    principal_arn: String,
    #[serde(rename = "type")]
    type_: String,
    created_at: Option<f64>,
}
