//! Who may do what: the cluster's ways in, the machine's role, the key of its volumes, as EKS, IAM and KMS have them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// An EKS cluster.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EksCluster {
    /// `CONFIG_MAP`, `API_AND_CONFIG_MAP` or `API`.
    pub authentication_mode: Option<String>,
    pub version: Option<String>,
    pub endpoint_public: Option<bool>,
    pub endpoint_private: Option<bool>,
    /// The CIDR blocks that the public endpoint admits.
    pub public_cidrs: Vec<String>,
    pub vpc: Option<String>,
    /// The subnets in which the private endpoint has its addresses.
    pub subnets: Vec<String>,
    /// The security groups of the private endpoint.
    pub groups: Vec<String>,
    /// `ipv4` or `ipv6`.
    pub ip_family: Option<String>,
}

impl EksCluster {
    /// Whether the cluster authenticates with access entries.
    pub fn reads_entries(&self) -> bool {
        matches!(self.authentication_mode.as_deref(), Some("API" | "API_AND_CONFIG_MAP"))
    }

    /// Whether the cluster authenticates with aws-auth.
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
    /// Whether the role's trust policy lets EC2 assume it. `None` if that depends on a condition.
    pub ec2_may_assume: Option<bool>,
}

/// The policies of a role.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RolePolicies {
    /// ARNs.
    pub attached: Vec<String>,
    /// Names of the inline policies.
    pub inline: Vec<String>,
}

/// A key, as `kms:DescribeKey` has it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KmsKey {
    /// `Enabled`, `Disabled`, `PendingDeletion`, `PendingImport`, `Unavailable`, ….
    pub state: String,
    /// When it will be deleted.
    pub deletion: Option<DateTime<Utc>>,
    /// Its ARN, whatever it was asked by.
    pub arn: Option<String>,
}

/// The principals that a key's policy and grants name, under any condition: ARNs, account numbers, `*` for everyone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyUsers {
    pub principals: Vec<String>,
}
