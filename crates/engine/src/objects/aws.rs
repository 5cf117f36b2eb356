//! What AWS answered to one question about one of the cluster's things, written down as a document like any other.
//!
//! nodewhy makes these itself where `--aws` permits it to ask; a dump may hold them. Rules read them as they read
//! objects.

use super::aws_network::{
    DhcpOptions, DnsAttributes, GroupRules, NatGateway, NetworkAcl, RouteTable, Vpc, VpcEndpoint, VpcSubnet,
};
use super::{Meta, masked, masked_by_line, nullable};
use chrono::{DateTime, Utc};
use logs::journey::Journey;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One answer.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsObservation {
    pub metadata: Meta,
    /// The call as IAM names it: `ec2:DescribeImages`.
    #[serde(deserialize_with = "nullable")]
    pub call: String,
    /// What was asked about: an image, an instance, a cluster, `CLUSTER/ROLE`, an instance profile, a key, a VPC.
    #[serde(deserialize_with = "nullable")]
    pub about: String,
    pub at: Option<DateTime<Utc>>,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Image(Image),
    Instance(Box<Instance>),
    Checks(Checks),
    Console(Console),
    Cluster(EksCluster),
    AccessEntry(AccessEntry),
    InstanceProfile(InstanceProfile),
    Key(KmsKey),
    Vpc(Vpc),
    Dns(DnsAttributes),
    DhcpOptions(DhcpOptions),
    Subnets(Vec<VpcSubnet>),
    RouteTables(Vec<RouteTable>),
    NetworkAcls(Vec<NetworkAcl>),
    SecurityGroup(GroupRules),
    VpcEndpoints(Vec<VpcEndpoint>),
    NatGateways(Vec<NatGateway>),
    /// AWS knows nothing of this name, in the region and the account that were asked.
    #[default]
    Absent,
    /// There is no answer.
    Refused(AwsRefusal),
}

impl Answer {
    /// Whether nothing follows from this one that does not follow from the other.
    pub fn tells_no_more_than(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Console(new), Self::Console(old)) => {
                (new.bytes == 0) == (old.bytes == 0) && new.journey.tells_no_more_than(&old.journey)
            }
            _ => self == other,
        }
    }
}

/// An image, as `ec2:DescribeImages` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Image {
    /// `pending`, `available`, `failed`, `deregistered`, `disabled`, …
    pub state: String,
    pub name: String,
    #[serde(serialize_with = "masked_by_line")]
    pub state_reason: Option<String>,
    pub created: Option<DateTime<Utc>>,
    pub deprecated_at: Option<DateTime<Utc>>,
}

/// An instance, as `ec2:DescribeInstances` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Instance {
    /// `pending`, `running`, `stopped`, `terminated`, …
    pub state: String,
    /// Why it is in this state: `Client.InternalError`.
    pub reason: Option<String>,
    #[serde(serialize_with = "masked_by_line")]
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

/// What the instance printed while it booted.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Console {
    /// What its lines prove; of the lines only those that are known, masked. The rules read it among the logs.
    pub journey: Journey,
    /// How much was read: the console of an instance that has just been launched is empty.
    pub bytes: usize,
}

/// An EKS cluster.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EksCluster {
    /// `CONFIG_MAP`, `API_AND_CONFIG_MAP` or `API`.
    pub authentication_mode: Option<String>,
    pub version: Option<String>,
    pub endpoint_public: Option<bool>,
    pub endpoint_private: Option<bool>,
    /// Whom the public endpoint admits.
    pub public_cidrs: Vec<String>,
    pub vpc: Option<String>,
    /// Where the private endpoint has its addresses.
    pub subnets: Vec<String>,
    /// Those of the private endpoint.
    pub groups: Vec<String>,
    /// `ipv4` or `ipv6`.
    pub ip_family: Option<String>,
}

impl EksCluster {
    /// Whether access entries let anybody in.
    pub fn reads_entries(&self) -> bool {
        matches!(self.authentication_mode.as_deref(), Some("API" | "API_AND_CONFIG_MAP"))
    }

    /// Whether aws-auth lets anybody in.
    pub fn reads_aws_auth(&self) -> bool {
        self.authentication_mode.as_deref() != Some("API")
    }
}

/// An access entry.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccessEntry {
    pub principal_arn: String,
    /// `STANDARD`, `EC2_LINUX`, `EC2_WINDOWS`, ….
    #[serde(rename = "type")]
    pub type_: String,
    pub created: Option<DateTime<Utc>>,
}

/// An instance profile and the role in it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceProfile {
    pub role_arn: Option<String>,
    pub role_created: Option<DateTime<Utc>>,
}

/// A key, as `kms:DescribeKey` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KmsKey {
    /// `Enabled`, `Disabled`, `PendingDeletion`, `PendingImport`, `Unavailable`, ….
    pub state: String,
    /// When it will be deleted.
    pub deletion: Option<DateTime<Utc>>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsRefusal {
    /// The action that IAM denies, or that failed: `eks:ListAccessEntries`.
    pub action: String,
    #[serde(serialize_with = "masked")]
    pub why: String,
    /// IAM denies it: asking again is in vain until somebody changes a policy.
    pub denied: bool,
}

impl fmt::Display for AwsRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, why, denied } = self;
        if *denied {
            write!(f, "nodewhy is not permitted to call {action}: {why}")
        } else {
            write!(f, "{action} gave no answer: {why}")
        }
    }
}
