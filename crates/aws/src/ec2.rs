//! EC2: how it is asked, instances, their checks and their consoles. Query in, XML out.

use super::console;
use super::questions::Call;
use super::transport::{CallFailure, Service, Transport, Unsigned, encode};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, NaiveDateTime, Utc};
use engine::objects::{Answer, Checks, Instance};
use http::Method;
use readers::source_text;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// aws-sdk-go-v2 service/ec2: its one API version.
const VERSION: &str = "2016-11-15";
/// Values that one filter takes. Source: EC2 API reference, "Filter".
pub const BATCH: usize = 100;

pub async fn call<T: DeserializeOwned>(
    transport: &mut Transport,
    call: Call,
    parameters: &[(String, &str)],
) -> Result<T, CallFailure> {
    let action = call.action().rsplit(':').next().unwrap_or_default();
    let parameters = parameters.iter().map(|(name, value)| format!("&{name}={}", encode(value)));
    let form = parameters.fold(format!("Action={action}&Version={VERSION}"), |form, parameter| form + &parameter);
    let unsigned = Unsigned { call, service: Service::Ec2, method: Method::POST, path: "/".to_owned(), form };
    read(&transport.send(&unsigned).await?)
}

pub fn read<T: DeserializeOwned>(answer: &[u8]) -> Result<T, CallFailure> {
    let text = std::str::from_utf8(answer).map_err(|_| CallFailure::Unanswered("the answer is no text".to_owned()))?;
    quick_xml::de::from_str(text)
        .map_err(|error| CallFailure::Unanswered(format!("the answer cannot be read: {error}")))
}

pub fn filter<'v>(name: &'v str, values: &'v [&str]) -> Vec<(String, &'v str)> {
    let values = values.iter().enumerate().map(|(n, value)| (format!("Filter.1.Value.{}", n + 1), *value));
    [("Filter.1.Name".to_owned(), name)].into_iter().chain(values).collect()
}

/// Answers for those of the things that EC2 showed; the rest it does not know.
pub fn answers(asked: &[&str], mut shown: BTreeMap<String, Answer>) -> Vec<(String, Answer)> {
    asked.iter().map(|id| ((*id).to_owned(), shown.remove(*id).unwrap_or(Answer::Absent))).collect()
}

pub async fn instances(transport: &mut Transport, ids: &[&str]) -> Result<Vec<(String, Answer)>, CallFailure> {
    let found: Instances = call(transport, Call::DescribeInstances, &filter("instance-id", ids)).await?;
    let instances = found.reservation_set.item.into_iter().flat_map(|reservation| reservation.instances_set.item);
    Ok(answers(ids, instances.map(|i| (i.instance_id.clone(), Answer::Instance(Box::new(i.into())))).collect()))
}

/// Of instances that are known to run.
pub async fn checks(transport: &mut Transport, ids: &[&str]) -> Result<Vec<(String, Answer)>, CallFailure> {
    let parameters: Vec<(String, &str)> =
        ids.iter().enumerate().map(|(n, id)| (format!("InstanceId.{}", n + 1), *id)).collect();
    let found: Statuses = call(transport, Call::DescribeInstanceStatus, &parameters).await?;
    let checks =
        |s: StatusItem| Answer::Checks(Checks { system: s.system_status.status, instance: s.instance_status.status });
    Ok(answers(ids, found.instance_status_set.item.into_iter().map(|s| (s.instance_id.clone(), checks(s))).collect()))
}

pub async fn console(transport: &mut Transport, id: &str) -> Result<Answer, CallFailure> {
    // `Latest` is for Nitro only, and others refuse it: what was posted after the boot is enough.
    let output: Output = call(transport, Call::GetConsoleOutput, &[("InstanceId".to_owned(), id)]).await?;
    let base64: String = output.output.split_whitespace().collect();
    let text = STANDARD.decode(base64).map_err(|_| CallFailure::Unanswered("the console is no base64".to_owned()))?;
    Ok(Answer::Console(Box::new(console::read(id, &text, output.timestamp))))
}

/// EC2's lists are `<item>`s.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub struct Items<T> {
    #[serde(default = "Vec::new")]
    pub item: Vec<T>,
}

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateReasonItem {
    code: String,
    pub message: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Instances {
    reservation_set: Items<Reservation>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reservation {
    #[serde(default)]
    instances_set: Items<InstanceItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InstanceItem {
    instance_id: String,
    image_id: String,
    instance_state: StateXml,
    private_dns_name: String,
    /// `User initiated (2026-01-15 12:05:10 GMT)`, for stops and terminations by call.
    reason: String,
    state_reason: StateReasonItem,
    iam_instance_profile: Profile,
    subnet_id: String,
    vpc_id: String,
    private_ip_address: String,
    ip_address: String,
    group_set: Items<GroupItem>,
    network_interface_set: Items<InterfaceItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GroupItem {
    group_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct InterfaceItem {
    owner_id: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StateXml {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile {
    arn: String,
}

impl From<InstanceItem> for Instance {
    fn from(item: InstanceItem) -> Self {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            state: item.instance_state.name,
            since: since(&item.reason),
            reason: said(item.state_reason.code),
            message: said(source_text::mask(&item.state_reason.message)),
            image: said(item.image_id),
            private_dns_name: said(item.private_dns_name),
            profile: said(item.iam_instance_profile.arn),
            subnet: said(item.subnet_id),
            vpc: said(item.vpc_id),
            owner: item.network_interface_set.item.into_iter().map(|interface| interface.owner_id).find_map(said),
            private_ip: said(item.private_ip_address),
            public_ip: said(item.ip_address),
            groups: item.group_set.item.into_iter().map(|group| group.group_id).collect(),
        }
    }
}

fn since(reason: &str) -> Option<DateTime<Utc>> {
    let (_, time) = reason.rsplit_once('(')?;
    let time = time.trim_end_matches(')').trim_end_matches(" GMT").trim_end_matches(" UTC");
    NaiveDateTime::parse_from_str(time, "%Y-%m-%d %H:%M:%S").ok().map(|time| time.and_utc())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statuses {
    instance_status_set: Items<StatusItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusItem {
    instance_id: String,
    system_status: Summary,
    instance_status: Summary,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Summary {
    status: String,
}

#[derive(Debug, Deserialize)]
struct Output {
    #[serde(default)]
    output: String,
    /// When EC2 got it last.
    timestamp: Option<DateTime<Utc>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_read_as_ec2_writes_it() {
        // The form is that of the EC2 API reference, DescribeInstances, cut down.
        let xml = r#"<?xml version="1.0" encoding="UTF-8"?>
            <DescribeInstancesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>x</requestId><reservationSet><item><reservationId>r-1</reservationId><groupSet/>
            <instancesSet><item><instanceId>i-0abc</instanceId><imageId>ami-1</imageId><instanceState><code>48</code><name>terminated</name></instanceState>
            <privateDnsName/><dnsName/><reason>User initiated (2026-01-15 12:05:10 GMT)</reason><tagSet><item><key>a</key><value>b</value></item></tagSet>
            <stateReason><code>Client.InternalError</code><message>Client.InternalError: Client error on launch</message></stateReason></item></instancesSet></item></reservationSet></DescribeInstancesResponse>"#;
        let found: Instances = read(xml.as_bytes()).unwrap();
        let instance: Instance =
            found.reservation_set.item.into_iter().flat_map(|r| r.instances_set.item).next().unwrap().into();
        assert_eq!(instance.state, "terminated");
        assert_eq!(instance.reason.as_deref(), Some("Client.InternalError"));
        assert_eq!(instance.since, "2026-01-15T12:05:10Z".parse().ok());
        assert_eq!(instance.private_dns_name, None);
    }
}
