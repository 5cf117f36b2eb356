//! EC2: the VPC around an instance, as far as it decides whether a packet passes.

use super::ec2::{self, Items};
use super::policy;
use super::questions::Call;
use super::transport::{CallFailure, Transport};
use engine::objects::{
    AclEntry, Answer, DhcpOptions, DnsAttributes, GroupRule, GroupRules, NatGateway, NetworkAcl, RouteTable, Vpc,
    VpcEndpoint, VpcRoute, VpcSubnet,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Pages of a list that are read.
const PAGES: usize = 10;

/// A list that comes in pages.
trait Page: DeserializeOwned {
    type Item;
    fn open(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! pages {
    ($($page:ident { $set:ident: $item:ident })*) => {
        $(
            #[derive(Debug, Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct $page {
                $set: Items<$item>,
                next_token: Option<String>,
            }

            impl Page for $page {
                type Item = $item;
                fn open(self) -> (Vec<$item>, Option<String>) {
                    (self.$set.item, self.next_token.filter(|token| !token.is_empty()))
                }
            }
        )*
    };
}

pages! {
    Vpcs { vpc_set: VpcItem }
    DhcpOptionsPage { dhcp_options_set: DhcpItem }
    Subnets { subnet_set: SubnetItem }
    RouteTables { route_table_set: TableItem }
    NetworkAcls { network_acl_set: AclItem }
    SecurityGroups { security_group_info: SecurityGroupItem }
    VpcEndpoints { vpc_endpoint_set: EndpointItem }
    NatGateways { nat_gateway_set: NatItem }
}

/// All pages, or a failure: of half a list nothing follows.
async fn all<P: Page>(
    transport: &mut Transport,
    call: Call,
    filter: Vec<(String, &str)>,
) -> Result<Vec<P::Item>, CallFailure> {
    let mut items = Vec::new();
    let mut token = String::new();
    for _ in 0..PAGES {
        let mut parameters = filter.clone();
        if !token.is_empty() {
            parameters.push(("NextToken".to_owned(), &token));
        }
        let page: P = ec2::call(transport, call, &parameters).await?;
        let (mut found, next) = page.open();
        items.append(&mut found);
        match next {
            Some(next) => token = next,
            None => return Ok(items),
        }
    }
    Err(CallFailure::Unanswered(format!("the list has more than {PAGES} pages")))
}

/// What a VPC has, by the call that lists it.
pub async fn of_vpc(transport: &mut Transport, call: Call, vpc: &str) -> Result<Answer, CallFailure> {
    let in_vpc = || ec2::filter("vpc-id", std::slice::from_ref(&vpc));
    Ok(match call {
        Call::DescribeVpcs => match all::<Vpcs>(transport, call, in_vpc()).await?.into_iter().next() {
            Some(vpc) => Answer::Vpc(Vpc { owner: vpc.owner_id, dhcp_options: vpc.dhcp_options_id }),
            None => Answer::Absent,
        },
        Call::DescribeVpcAttribute => Answer::Dns(DnsAttributes {
            support: attribute(transport, vpc, "enableDnsSupport").await?.enable_dns_support.value,
            host_names: attribute(transport, vpc, "enableDnsHostnames").await?.enable_dns_hostnames.value,
        }),
        Call::DescribeSubnets => Answer::Subnets(into(all::<Subnets>(transport, call, in_vpc()).await?)),
        Call::DescribeRouteTables => Answer::RouteTables(into(all::<RouteTables>(transport, call, in_vpc()).await?)),
        Call::DescribeNetworkAcls => Answer::NetworkAcls(into(all::<NetworkAcls>(transport, call, in_vpc()).await?)),
        Call::DescribeVpcEndpoints => Answer::VpcEndpoints(into(all::<VpcEndpoints>(transport, call, in_vpc()).await?)),
        Call::DescribeNatGateways => Answer::NatGateways(into(all::<NatGateways>(transport, call, in_vpc()).await?)),
        _ => Answer::Absent,
    })
}

fn into<A, B: From<A>>(items: Vec<A>) -> Vec<B> {
    items.into_iter().map(B::from).collect()
}

async fn attribute(transport: &mut Transport, vpc: &str, name: &str) -> Result<Attributes, CallFailure> {
    let parameters = [("VpcId".to_owned(), vpc), ("Attribute".to_owned(), name)];
    ec2::call(transport, Call::DescribeVpcAttribute, &parameters).await
}

pub async fn dhcp_options(transport: &mut Transport, id: &str) -> Result<Answer, CallFailure> {
    let filter = ec2::filter("dhcp-options-id", std::slice::from_ref(&id));
    let found = all::<DhcpOptionsPage>(transport, Call::DescribeDhcpOptions, filter).await?;
    let Some(options) = found.into_iter().next() else { return Ok(Answer::Absent) };
    let servers = options.dhcp_configuration_set.item.into_iter().filter(|o| o.key == "domain-name-servers");
    let name_servers = servers.flat_map(|o| o.value_set.item).map(|value| value.value).collect();
    Ok(Answer::DhcpOptions(DhcpOptions { name_servers }))
}

pub async fn security_groups(transport: &mut Transport, ids: &[&str]) -> Result<Vec<(String, Answer)>, CallFailure> {
    let found = all::<SecurityGroups>(transport, Call::DescribeSecurityGroups, ec2::filter("group-id", ids)).await?;
    let rules = |group: &SecurityGroupItem| {
        let directions = [(false, &group.ip_permissions), (true, &group.ip_permissions_egress)];
        let rules = directions.into_iter().flat_map(|(egress, rules)| rules.item.iter().map(move |r| r.rule(egress)));
        Answer::SecurityGroup(GroupRules { rules: rules.collect() })
    };
    Ok(ec2::answers(ids, found.into_iter().map(|group| (group.group_id.clone(), rules(&group))).collect()))
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Attributes {
    enable_dns_support: Flag,
    enable_dns_hostnames: Flag,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Flag {
    value: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct VpcItem {
    dhcp_options_id: Option<String>,
    owner_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DhcpItem {
    dhcp_configuration_set: Items<DhcpOption>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DhcpOption {
    key: String,
    value_set: Items<Text>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Text {
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SubnetItem {
    subnet_id: String,
    cidr_block: Option<String>,
    owner_id: Option<String>,
}

impl From<SubnetItem> for VpcSubnet {
    fn from(item: SubnetItem) -> Self {
        Self { id: item.subnet_id, cidr: item.cidr_block.unwrap_or_default(), owner: item.owner_id }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TableItem {
    route_table_id: String,
    #[serde(default)]
    association_set: Items<Association>,
    #[serde(default)]
    route_set: Items<RouteItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Association {
    subnet_id: Option<String>,
    main: bool,
}

/// Whatever a route leads to has an element of its own, named for its kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RouteItem {
    destination_cidr_block: Option<String>,
    destination_prefix_list_id: Option<String>,
    state: String,
    gateway_id: Option<String>,
    nat_gateway_id: Option<String>,
    transit_gateway_id: Option<String>,
    vpc_peering_connection_id: Option<String>,
    egress_only_internet_gateway_id: Option<String>,
    local_gateway_id: Option<String>,
    carrier_gateway_id: Option<String>,
    core_network_arn: Option<String>,
    instance_id: Option<String>,
    network_interface_id: Option<String>,
}

impl From<RouteItem> for VpcRoute {
    fn from(item: RouteItem) -> Self {
        let targets = [
            item.gateway_id,
            item.nat_gateway_id,
            item.transit_gateway_id,
            item.vpc_peering_connection_id,
            item.egress_only_internet_gateway_id,
            item.local_gateway_id,
            item.carrier_gateway_id,
            item.core_network_arn,
            item.instance_id,
            item.network_interface_id,
        ];
        Self {
            cidr: item.destination_cidr_block,
            prefix_list: item.destination_prefix_list_id,
            target: targets.into_iter().flatten().find(|id| !id.is_empty()).unwrap_or_default(),
            state: item.state,
        }
    }
}

impl From<TableItem> for RouteTable {
    fn from(item: TableItem) -> Self {
        Self {
            id: item.route_table_id,
            main: item.association_set.item.iter().any(|association| association.main),
            subnets: item.association_set.item.into_iter().filter_map(|association| association.subnet_id).collect(),
            routes: into(item.route_set.item),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AclItem {
    network_acl_id: String,
    #[serde(default)]
    association_set: Items<Association>,
    #[serde(default)]
    entry_set: Items<EntryItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EntryItem {
    rule_number: u32,
    protocol: String,
    rule_action: String,
    egress: bool,
    cidr_block: Option<String>,
    port_range: Ports,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Ports {
    from: Option<u16>,
    to: Option<u16>,
}

impl From<AclItem> for NetworkAcl {
    fn from(item: AclItem) -> Self {
        let entry = |entry: EntryItem| AclEntry {
            number: entry.rule_number,
            egress: entry.egress,
            allow: entry.rule_action == "allow",
            protocol: entry.protocol,
            cidr: entry.cidr_block,
            from: entry.port_range.from,
            to: entry.port_range.to,
        };
        Self {
            id: item.network_acl_id,
            subnets: item.association_set.item.into_iter().filter_map(|association| association.subnet_id).collect(),
            entries: item.entry_set.item.into_iter().map(entry).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SecurityGroupItem {
    group_id: String,
    #[serde(default)]
    ip_permissions: Items<PermissionItem>,
    #[serde(default)]
    ip_permissions_egress: Items<PermissionItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PermissionItem {
    ip_protocol: String,
    from_port: Option<i32>,
    to_port: Option<i32>,
    groups: Items<PermittedItem>,
    ip_ranges: Items<PermittedItem>,
    prefix_list_ids: Items<PermittedItem>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PermittedItem {
    group_id: Option<String>,
    cidr_ip: Option<String>,
    prefix_list_id: Option<String>,
}

impl PermissionItem {
    fn rule(&self, egress: bool) -> GroupRule {
        GroupRule {
            egress,
            protocol: self.ip_protocol.clone(),
            from: self.from_port,
            to: self.to_port,
            cidrs: self.ip_ranges.item.iter().filter_map(|range| range.cidr_ip.clone()).collect(),
            groups: self.groups.item.iter().filter_map(|group| group.group_id.clone()).collect(),
            prefix_lists: self.prefix_list_ids.item.iter().filter_map(|list| list.prefix_list_id.clone()).collect(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct EndpointItem {
    vpc_endpoint_id: String,
    #[serde(default)]
    vpc_endpoint_type: String,
    #[serde(default)]
    service_name: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    private_dns_enabled: bool,
    #[serde(default)]
    policy_document: String,
    #[serde(default)]
    subnet_id_set: Items<String>,
    #[serde(default)]
    group_set: Items<PermittedItem>,
    #[serde(default)]
    route_table_id_set: Items<String>,
}

impl From<EndpointItem> for VpcEndpoint {
    fn from(item: EndpointItem) -> Self {
        Self {
            id: item.vpc_endpoint_id,
            type_: item.vpc_endpoint_type,
            service: item.service_name,
            // The API writes `available`, its model `Available`.
            state: item.state.to_ascii_lowercase(),
            private_dns: item.private_dns_enabled,
            subnets: item.subnet_id_set.item,
            groups: item.group_set.item.into_iter().filter_map(|group| group.group_id).collect(),
            route_tables: item.route_table_id_set.item,
            policy_open: policy::is_open(&item.policy_document),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NatItem {
    nat_gateway_id: String,
    #[serde(default)]
    state: String,
    subnet_id: Option<String>,
    connectivity_type: Option<String>,
    #[serde(default)]
    nat_gateway_address_set: Items<NatAddress>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NatAddress {
    public_ip: Option<String>,
}

impl From<NatItem> for NatGateway {
    fn from(item: NatItem) -> Self {
        Self {
            id: item.nat_gateway_id,
            state: item.state,
            connectivity: item.connectivity_type,
            subnet: item.subnet_id.filter(|subnet| !subnet.is_empty()),
            public_ips: item.nat_gateway_address_set.item.into_iter().filter_map(|a| a.public_ip).collect(),
        }
    }
}
