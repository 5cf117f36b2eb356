//! What AWS answered to one question about one of the cluster's things, written down as a document like any other.
//!
//! nodewhy makes these itself where `--aws` permits it to ask; a dump may hold them. Rules read them as they read
//! objects.

use super::aws_access::{AccessEntry, EksCluster, InstanceProfile, KeyUsers, KmsKey, RolePolicies};
use super::aws_ec2::{Checks, Console, Image, Instance, InstanceType, ServiceQuota};
use super::aws_network::{
    DhcpOptions, DnsAttributes, GroupRules, NatGateway, NetworkAcl, RouteTable, Vpc, VpcEndpoint, VpcSubnet,
};
use super::{Meta, message, nullable};
use chrono::{DateTime, Utc};
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
    /// The subject of the question: an image, an instance, a cluster, `CLUSTER/ROLE`, an instance profile, a key, a
    /// VPC.
    #[serde(deserialize_with = "nullable")]
    pub about: String,
    pub at: Option<DateTime<Utc>>,
    pub answer: Answer,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    Image(Image),
    InstanceType(InstanceType),
    Instance(Box<Instance>),
    Checks(Checks),
    Console(Box<Console>),
    Cluster(EksCluster),
    AccessEntry(AccessEntry),
    InstanceProfile(InstanceProfile),
    RolePolicies(RolePolicies),
    Key(KmsKey),
    KeyUsers(KeyUsers),
    Quota(ServiceQuota),
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

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AwsRefusal {
    /// The action that IAM denies, or that failed: `eks:ListAccessEntries`.
    pub action: String,
    #[serde(with = "message")]
    pub why: String,
    /// IAM denies the action. Asking again fails until an IAM policy changes.
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
