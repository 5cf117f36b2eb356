//! A hop of the way that rejects packets: the resource, the sentence about it, and the change.

use super::address::ANYWHERE;
use crate::cluster_state::aws;
use crate::objects::{NatGateway, NetworkAcl, RouteTable, VpcEndpoint, VpcRoute, VpcSubnet};

/// A hop that rejects packets, and the resource to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusingHop {
    /// The rule that reports it.
    pub cause: &'static str,
    pub kind: &'static str,
    pub id: String,
    /// The call that showed it, and the field.
    pub call: &'static str,
    pub field: &'static str,
    pub observed: String,
    /// A clause: `sg-1 permits no HTTPS to it`.
    pub said: String,
    pub fix: String,
}

pub(crate) const NO_ROUTE: &str = "NoRouteOut";
pub(crate) const NO_PUBLIC_ADDRESS: &str = "PublicSubnetWithoutPublicIp";
pub(crate) const FILTERED: &str = "SecurityGroupBlocksKubelet";
pub(crate) const NAME_UNRESOLVED: &str = "PrivateEndpointUnresolved";
pub(crate) const PRIVATE_DNS_MISSING: &str = "PrivateDnsMissing";
pub(crate) const ACCESS_REFUSED: &str = "EndpointAccessRefuses";

pub(super) fn no_names(vpc: &str) -> RefusingHop {
    let said = format!("the VPC {vpc} has DNS support off and no name servers of its own");
    let fix = format!(
        "Turn on DNS support and DNS host names of {vpc}, or give it DHCP options with name servers. Neither disrupts \
         running nodes."
    );
    of_dns(vpc, "enableDnsSupport", said, fix)
}

/// Names that a private zone would answer resolve to outside addresses, and the way there ends.
pub(super) fn no_private_zone(vpc: &str, beyond: &RefusingHop) -> RefusingHop {
    let beyond = &beyond.said;
    let said = format!("the VPC {vpc} has DNS host names off, so the name leads to the public address, and {beyond}");
    let fix = format!(
        "Turn on DNS host names of {vpc}: without them its private zones do not apply. This does not disrupt running \
         nodes."
    );
    of_dns(vpc, "enableDnsHostnames", said, fix)
}

fn of_dns(vpc: &str, field: &'static str, said: String, fix: String) -> RefusingHop {
    RefusingHop {
        cause: NAME_UNRESOLVED,
        kind: "VPC",
        id: vpc.to_owned(),
        call: aws::DNS,
        field,
        observed: "false".to_owned(),
        said,
        fix,
    }
}

pub(super) fn no_address(table: &RouteTable, here: &VpcSubnet, route: &VpcRoute) -> RefusingHop {
    let (subnet, table, gateway) = (&here.id, &table.id, &route.target);
    RefusingHop {
        cause: NO_PUBLIC_ADDRESS,
        kind: "Subnet",
        id: subnet.clone(),
        call: aws::ROUTE_TABLES,
        field: "Routes",
        observed: format!("{table}: {ANYWHERE} → {gateway}"),
        said: format!("{subnet} is public ({table} leads to {gateway}), and the instance has no public address"),
        fix: format!(
            "Select only private subnets: remove the discovery tag from {subnet}, or select by id. Or set \
             associatePublicIPAddress in the node class. Only new nodes get the change."
        ),
    }
}

fn of_table(table: &RouteTable, observed: String, said: String, fix: String) -> RefusingHop {
    RefusingHop {
        cause: NO_ROUTE,
        kind: "RouteTable",
        id: table.id.clone(),
        call: aws::ROUTE_TABLES,
        field: "Routes",
        observed,
        said,
        fix,
    }
}

fn routes(table: &RouteTable) -> String {
    let shown = |route: &VpcRoute| {
        let to = route.cidr.as_deref().or(route.prefix_list.as_deref()).unwrap_or("IPv6");
        format!("{to} → {}", route.target)
    };
    table.routes.iter().map(shown).collect::<Vec<_>>().join(", ")
}

pub(super) fn no_default(table: &RouteTable, subnet: &VpcSubnet) -> RefusingHop {
    let (id, of) = (&table.id, &subnet.id);
    let which = if table.main && !table.subnets.contains(&subnet.id) { "the VPC's main table " } else { "" };
    let said = format!("{which}{id} of {of} has no default route");
    let fix = format!(
        "Give {id} a default route to a NAT gateway. Or give the VPC the endpoints that a private cluster needs: ec2, \
         ecr.api, ecr.dkr, s3, sts and eks. Neither disrupts running nodes."
    );
    of_table(table, routes(table), said, fix)
}

pub(super) fn blackhole(table: &RouteTable, subnet: &VpcSubnet, route: &VpcRoute) -> RefusingHop {
    let (id, of, target) = (&table.id, &subnet.id, &route.target);
    let said = format!("the default route of {id}, of {of}, leads to {target}, which is gone");
    let fix = format!("Replace the default route of {id} with one to a NAT gateway that exists.");
    of_table(table, format!("{ANYWHERE} → {target}, blackhole"), said, fix)
}

pub(super) fn broken(nat: &NatGateway) -> RefusingHop {
    let (id, state) = (&nat.id, &nat.state);
    RefusingHop {
        cause: NO_ROUTE,
        kind: "NatGateway",
        id: id.clone(),
        call: aws::NAT_GATEWAYS,
        field: "State",
        observed: state.clone(),
        said: format!("the NAT gateway {id} is {state}"),
        fix: format!("Create a new NAT gateway and set it as the target of the default route, in place of {id}."),
    }
}

pub(super) fn nat_not_public(nat: &NatGateway, table: &RouteTable, place: &VpcSubnet) -> RefusingHop {
    let (id, nat, subnet) = (&table.id, &nat.id, &place.id);
    let said = format!("the NAT gateway {nat} is in {subnet}, whose table {id} leads to no internet gateway");
    let fix = format!("Give {id} a default route to an internet gateway, or move {nat} to a public subnet.");
    of_table(table, routes(table), said, fix)
}

pub(super) fn no_private_name(endpoint: &VpcEndpoint, beyond: &RefusingHop) -> RefusingHop {
    let (id, service) = (&endpoint.id, &endpoint.service);
    RefusingHop {
        cause: PRIVATE_DNS_MISSING,
        kind: "VpcEndpoint",
        id: id.clone(),
        call: aws::VPC_ENDPOINTS,
        field: "PrivateDnsEnabled",
        observed: "false".to_owned(),
        said: format!(
            "the endpoint {id} of {service} has private DNS off, so the name leads to public addresses, and {}",
            beyond.said
        ),
        fix: format!("Turn on private DNS of {id}. This does not disrupt running nodes."),
    }
}

pub(super) fn denied(
    acl: &NetworkAcl,
    subnet: &str,
    egress: bool,
    (from, to): (u16, u16),
    rule: Option<u32>,
) -> RefusingHop {
    let direction = if egress { "outbound" } else { "inbound" };
    let ports = if from == to { from.to_string() } else { format!("{from}-{to}") };
    let observed = rule.map_or_else(|| "no rule allows it".to_owned(), |number| format!("rule {number} denies it"));
    let id = &acl.id;
    RefusingHop {
        cause: FILTERED,
        kind: "NetworkAcl",
        id: id.clone(),
        call: aws::NETWORK_ACLS,
        field: if egress { "Entries, outbound" } else { "Entries, inbound" },
        said: format!("the network ACL {id} of {subnet} denies {direction} TCP {ports} ({observed})"),
        fix: format!(
            "Allow {direction} TCP {ports} in {id}, with a rule of a lower number than the denial. An ACL has no \
             connections, so answers need a rule too."
        ),
        observed,
    }
}

/// The first of the groups is the one to change.
pub(super) fn not_permitted(
    first: &str,
    groups: &[String],
    egress: bool,
    peers: &[String],
    whose: &str,
) -> RefusingHop {
    let all = groups.join(", ");
    let machine = peers.join(", ");
    let (field, said, fix) = if egress {
        (
            "IpPermissionsEgress",
            format!("{all} of the instance allows no outbound 443 {whose}"),
            format!("Allow outbound 443 in {first}. This does not disrupt running nodes."),
        )
    } else {
        (
            "IpPermissions",
            format!("{all} {whose} accepts no 443 from the instance ({machine})"),
            format!("Allow 443 from {machine} in {first}. This does not disrupt running nodes."),
        )
    };
    RefusingHop {
        cause: FILTERED,
        kind: "SecurityGroup",
        id: first.to_owned(),
        call: aws::SECURITY_GROUP,
        field,
        observed: "no rule allows it".to_owned(),
        said,
        fix,
    }
}

pub(super) fn not_admitted(cluster: &str, admitted: &[String], own: &[&str]) -> RefusingHop {
    let (admitted, all) = (admitted.join(", "), own.join(", "));
    RefusingHop {
        cause: ACCESS_REFUSED,
        kind: "Cluster",
        id: cluster.to_owned(),
        call: aws::CLUSTER,
        field: "resourcesVpcConfig.publicAccessCidrs",
        said: format!("the public endpoint of {cluster} accepts {admitted} only, but the instance uses {all}"),
        observed: admitted,
        fix: format!(
            "Turn on private access of {cluster}, which instances in its VPC then use. Or add {all} to the list of its \
             public endpoint. Neither disrupts running nodes."
        ),
    }
}
