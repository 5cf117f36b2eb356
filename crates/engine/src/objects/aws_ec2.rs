//! Images, types and instances, as EC2 describes them, and how many of them the account may have.

use super::{masked_by_line, message_read};
use chrono::{DateTime, Utc};
use logs::journey::Journey;
use serde::{Deserialize, Serialize};

/// An image, as `ec2:DescribeImages` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// `pending`, `available`, `failed`, `deregistered`, `disabled`, …
    pub state: String,
    pub name: String,
    #[serde(deserialize_with = "message_read", serialize_with = "masked_by_line")]
    pub state_reason: Option<String>,
    pub created: Option<DateTime<Utc>>,
    pub deprecated_at: Option<DateTime<Utc>>,
    /// `x86_64`, `arm64`, ….
    pub architecture: Option<String>,
    /// Whether it has the driver of the Elastic Network Adapter; `None` where EC2 does not tell.
    pub ena: Option<bool>,
    /// `uefi`, `legacy-bios`, `uefi-preferred`; without one it boots as the instance type does.
    pub boot_mode: Option<String>,
    /// The volumes that it is made of.
    pub volumes: Vec<ImageVolume>,
}

/// A volume of an image, which a machine gets as a copy of the snapshot.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageVolume {
    pub device: String,
    pub snapshot: Option<String>,
    pub gib: Option<u64>,
    pub encrypted: bool,
}

/// The requirements of an instance type on an image, as `ec2:DescribeInstanceTypes` has them.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceType {
    /// `x86_64`, `arm64`, `i386`, ….
    pub architectures: Vec<String>,
    /// `legacy-bios`, `uefi`.
    pub boot_modes: Vec<String>,
    /// `required`, `supported` or `unsupported`.
    pub ena: String,
}

/// An instance, as `ec2:DescribeInstances` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    /// `pending`, `running`, `stopped`, `terminated`, …
    pub state: String,
    /// Why it is in this state: `Client.InternalError`.
    pub reason: Option<String>,
    #[serde(deserialize_with = "message_read", serialize_with = "masked_by_line")]
    pub message: Option<String>,
    /// Since when, where EC2 tells.
    pub since: Option<DateTime<Utc>>,
    pub image: Option<String>,
    pub private_dns_name: Option<String>,
    /// The instance profile's ARN.
    pub profile: Option<String>,
    pub subnet: Option<String>,
    pub vpc: Option<String>,
    /// The account.
    pub owner: Option<String>,
    pub private_ip: Option<String>,
    pub public_ip: Option<String>,
    pub groups: Vec<String>,
}

/// The two status checks, as `ec2:DescribeInstanceStatus` has them: `ok`, `impaired`, `initializing`, ….
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Checks {
    pub system: String,
    pub instance: String,
}

/// The instance's console output.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Console {
    /// The facts that its lines prove. Only known lines are kept, masked. The rules read them with the logs.
    pub journey: Journey,
    /// How much was read: the console of an instance that has just been launched is empty.
    pub bytes: usize,
}

/// A quota of the account, as `servicequotas:GetServiceQuota` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceQuota {
    pub name: String,
    pub value: f64,
}
