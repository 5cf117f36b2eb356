//! The network around an instance, as EC2 describes it: only what decides whether a packet passes.

use serde::{Deserialize, Serialize};

/// A VPC, as `ec2:DescribeVpcs` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Vpc {
    pub owner: Option<String>,
    /// The set of DHCP options; `default` where it has none.
    pub dhcp_options: Option<String>,
}

/// The two attributes of a VPC by which names are resolved there, as `ec2:DescribeVpcAttribute` has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DnsAttributes {
    pub support: Option<bool>,
    pub host_names: Option<bool>,
}

/// A set of DHCP options, as `ec2:DescribeDhcpOptions` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DhcpOptions {
    pub name_servers: Vec<String>,
}

/// A subnet, as `ec2:DescribeSubnets` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VpcSubnet {
    pub id: String,
    pub cidr: String,
    /// Another account than the instance's where the VPC is shared.
    pub owner: Option<String>,
}

/// A route table, as `ec2:DescribeRouteTables` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteTable {
    pub id: String,
    /// Whether it is the main table, which applies to every subnet without an associated table.
    pub main: bool,
    pub subnets: Vec<String>,
    pub routes: Vec<VpcRoute>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VpcRoute {
    /// IPv4; routes of IPv6 have none.
    pub cidr: Option<String>,
    pub prefix_list: Option<String>,
    /// `local`, or the id of what the route leads to.
    pub target: String,
    /// `active` or `blackhole`.
    pub state: String,
}

/// A network ACL, as `ec2:DescribeNetworkAcls` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkAcl {
    pub id: String,
    pub subnets: Vec<String>,
    pub entries: Vec<AclEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AclEntry {
    pub number: u32,
    pub egress: bool,
    pub allow: bool,
    /// By number: 6 is TCP, -1 is all.
    pub protocol: String,
    /// IPv4; entries of IPv6 have none.
    pub cidr: Option<String>,
    pub from: Option<u16>,
    pub to: Option<u16>,
}

/// A security group with its rules, as `ec2:DescribeSecurityGroups` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupRules {
    pub rules: Vec<GroupRule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupRule {
    pub egress: bool,
    /// `tcp`, or -1 for all.
    pub protocol: String,
    pub from: Option<i32>,
    pub to: Option<i32>,
    pub cidrs: Vec<String>,
    pub groups: Vec<String>,
    pub prefix_lists: Vec<String>,
}

/// A VPC endpoint, as `ec2:DescribeVpcEndpoints` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VpcEndpoint {
    pub id: String,
    /// `Interface`, `Gateway`, ….
    #[serde(rename = "type")]
    pub type_: String,
    /// `com.amazonaws.eu-west-1.ecr.api`
    pub service: String,
    pub state: String,
    pub private_dns: bool,
    pub subnets: Vec<String>,
    pub groups: Vec<String>,
    pub route_tables: Vec<String>,
    /// Whether its policy permits everything to everybody, as it does unless somebody changes it.
    pub policy_open: bool,
}

/// A NAT gateway, as `ec2:DescribeNatGateways` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NatGateway {
    pub id: String,
    pub state: String,
    /// `public` or `private`.
    pub connectivity: Option<String>,
    pub subnet: Option<String>,
    pub public_ips: Vec<String>,
}
