//! From the machine's interface to one API: the name, the rules of groups and ACLs, the routes and gateways. The result
//! is the first hop that certainly rejects packets.
//!
//! Whatever nodewhy does not understand on the way (a transit gateway, a peering, an appliance, a prefix list, your own
//! name server, a missing answer) is unknown and never a fault.

use super::address::{ANYWHERE, Cidr, Peer, Share};
use super::filters::{self, ANSWERS, ANSWERS_OF_NAT, Decision, HTTPS, decide};
use super::hop::{self, FILTERED, RefusingHop};
use crate::objects::{
    DnsAttributes, EksCluster, GroupRules, Instance, NatGateway, NetworkAcl, RouteTable, VpcEndpoint, VpcRoute,
    VpcSubnet,
};
use std::collections::BTreeMap;
use std::fmt;

/// AWS's answers about the way; `None` is unknown.
#[derive(Debug, Default)]
pub(crate) struct Way<'w> {
    pub instance: Option<&'w Instance>,
    pub cluster_name: &'w str,
    pub cluster: Option<&'w EksCluster>,
    pub dns: Option<&'w DnsAttributes>,
    /// By DHCP; empty if the VPC has no options, which means Amazon's.
    pub name_servers: Option<&'w [String]>,
    pub subnets: Option<&'w [VpcSubnet]>,
    pub tables: Option<&'w [RouteTable]>,
    pub acls: Option<&'w [NetworkAcl]>,
    pub groups: BTreeMap<&'w str, &'w GroupRules>,
    pub endpoints: Option<&'w [VpcEndpoint]>,
    pub gateways: Option<&'w [NatGateway]>,
}

/// The API that a machine must reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Cluster,
    /// An AWS service, by the last part of its VPC endpoints' names.
    Service(&'static str),
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("the API server"),
            Self::Service(service) => write!(f, "the service {service}"),
        }
    }
}

/// Whether packets get through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Passage {
    Open,
    Unknown,
    Refused(Box<RefusingHop>),
}

impl Passage {
    /// Hops in a row: one that rejects packets is enough, wherever it is.
    fn and(self, next: impl FnOnce() -> Self) -> Self {
        match self {
            Self::Open => next(),
            Self::Unknown => match next() {
                Self::Open => Self::Unknown,
                other => other,
            },
            refused @ Self::Refused(_) => refused,
        }
    }

    /// Parallel ways: only all of them together reject packets.
    fn any(ways: impl IntoIterator<Item = Self>) -> Self {
        ways.into_iter()
            .reduce(|first, other| match (first, other) {
                (Self::Open, _) | (_, Self::Open) => Self::Open,
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                (first, _) => first,
            })
            .unwrap_or(Self::Unknown)
    }

    /// A more specific rule may decide otherwise.
    fn unless(self, exceptions: bool) -> Self {
        if exceptions && self != Self::Open { Self::Unknown } else { self }
    }
}

/// Something with addresses in the VPC: the private API endpoint, an interface endpoint.
struct Inside<'w> {
    kind: &'static str,
    subnets: &'w [String],
    groups: &'w [String],
}

/// The name servers, and whether private zones apply there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolver {
    Amazon,
    /// Amazon's, without private zones: the VPC has no host names.
    AmazonPublicOnly,
    /// Amazon's, which the VPC has turned off.
    Off,
    Own,
}

impl<'w> Way<'w> {
    pub(crate) fn to(&self, api: Api) -> Passage {
        let Some(here) = self.here() else { return Passage::Unknown };
        let Some(resolver) = self.resolver() else { return Passage::Unknown };
        if resolver == Resolver::Off {
            return Passage::Refused(Box::new(hop::no_names(self.vpc())));
        }
        match api {
            Api::Cluster => self.to_cluster(here, resolver),
            Api::Service(service) => self.to_service(here, resolver, service),
        }
    }

    /// The machine's subnet. Of a subnet that another account shares not all is seen.
    /// Source: Amazon VPC user guide, "Share your VPC subnets with other accounts".
    fn here(&self) -> Option<&'w VpcSubnet> {
        let instance = self.instance?;
        let subnet = self.subnet(instance.subnet.as_deref()?)?;
        (subnet.owner == instance.owner).then_some(subnet)
    }

    fn subnet(&self, id: &str) -> Option<&'w VpcSubnet> {
        self.subnets?.iter().find(|subnet| subnet.id == id)
    }

    fn resolver(&self) -> Option<Resolver> {
        /// Source: Amazon VPC user guide, "DHCP option sets": the name, and the address of the same resolver.
        const AMAZONS: [&str; 2] = ["AmazonProvidedDNS", "169.254.169.253"];
        if self.name_servers?.iter().any(|server| !AMAZONS.contains(&server.as_str())) {
            return Some(Resolver::Own);
        }
        let dns = self.dns?;
        Some(match (dns.support?, dns.host_names?) {
            (false, _) => Resolver::Off,
            (true, false) => Resolver::AmazonPublicOnly,
            (true, true) => Resolver::Amazon,
        })
    }

    pub(crate) fn vpc(&self) -> &'w str {
        self.instance.and_then(|instance| instance.vpc.as_deref()).unwrap_or_default()
    }

    fn to_cluster(&self, here: &VpcSubnet, resolver: Resolver) -> Passage {
        let Some(cluster) = self.cluster else { return Passage::Unknown };
        let (Some(public), Some(private)) = (cluster.endpoint_public, cluster.endpoint_private) else {
            return Passage::Unknown;
        };
        if cluster.ip_family.as_deref() == Some("ipv6") || cluster.vpc.is_none() {
            return Passage::Unknown;
        }
        let is_there = cluster.vpc.as_deref() == Some(self.vpc());
        let inside = || {
            let inside = Inside { kind: "the API endpoint", subnets: &cluster.subnets, groups: &cluster.groups };
            if is_there { self.to_inside(here, &inside) } else { Passage::Unknown }
        };
        let outside = || self.to_internet(here, Some(cluster));
        match (public, private, resolver) {
            (true, false, _) => outside(),
            // Public name servers give the private addresses, too.
            // Source: Amazon EKS user guide, "Cluster API server endpoint", private access only.
            (false, true, _) | (true, true, Resolver::Amazon) if is_there => inside(),
            (true, true, Resolver::AmazonPublicOnly) if is_there => self.without_private_zone(outside()),
            _ => Passage::Unknown,
        }
    }

    fn to_service(&self, here: &VpcSubnet, resolver: Resolver, service: &str) -> Passage {
        let (Some(endpoints), Some(table)) = (self.endpoints, self.table(here)) else { return Passage::Unknown };
        if resolver == Resolver::Own {
            return Passage::Unknown;
        }
        let of_service: Vec<&VpcEndpoint> = endpoints.iter().filter(|e| is_of(&e.service, service)).collect();
        let is_used = |e: &&VpcEndpoint| e.type_ == "Gateway" && e.route_tables.contains(&table.id);
        if let Some(gateway) = of_service.iter().copied().find(is_used) {
            return self.filters_out(here).and(|| policy(gateway));
        }
        let interfaces: Vec<&VpcEndpoint> = of_service.into_iter().filter(|e| e.type_ == "Interface").collect();
        let outside = || self.to_internet(here, None);
        let Some(named) = interfaces.iter().find(|e| e.private_dns) else {
            return match (outside(), interfaces.first()) {
                (Passage::Refused(beyond), Some(endpoint)) if beyond.cause != FILTERED => {
                    Passage::Refused(Box::new(hop::no_private_name(endpoint, &beyond)))
                }
                (passage, _) => passage,
            };
        };
        if named.state != "available" {
            return Passage::Unknown;
        }
        let inside = || {
            let inside = Inside { kind: "its VPC endpoint", subnets: &named.subnets, groups: &named.groups };
            self.to_inside(here, &inside).and(|| policy(named))
        };
        if resolver == Resolver::Amazon {
            return inside();
        }
        self.without_private_zone(outside())
    }

    /// The way outside, used because names resolve there that a private zone would answer.
    fn without_private_zone(&self, outside: Passage) -> Passage {
        match outside {
            Passage::Refused(beyond) => Passage::Refused(Box::new(hop::no_private_zone(self.vpc(), &beyond))),
            passage => passage,
        }
    }

    /// Within the VPC.
    fn to_inside(&self, here: &VpcSubnet, inside: &Inside) -> Passage {
        let places = inside.subnets.iter().map(|id| {
            let Some((there, range)) = self.subnet(id).and_then(|there| Some((there, Cidr::parse(&there.cidr)?)))
            else {
                return Passage::Unknown;
            };
            self.rules_out(Peer::Within(range), inside)
                .and(|| self.local_route(here, range))
                .and(|| self.between(here, there))
        });
        Passage::any(places).and(|| self.rules_in(inside))
    }

    fn local_route(&self, here: &VpcSubnet, to: Cidr) -> Passage {
        let Some(table) = self.table(here) else { return Passage::Unknown };
        let routes = |local: bool| table.routes.iter().filter(move |route| (route.target == "local") == local);
        let range = |route: &VpcRoute| Cidr::parse(route.cidr.as_deref()?);
        let is_local = routes(true).filter_map(range).any(|route| route.contains(to));
        // An appliance may stand between the subnets.
        let is_diverted =
            routes(false).filter(|r| r.cidr.as_deref() != Some(ANYWHERE)).filter_map(range).any(|r| r.overlaps(to));
        if is_local && !is_diverted { Passage::Open } else { Passage::Unknown }
    }

    /// The ACLs of two subnets, in both directions.
    fn between(&self, here: &VpcSubnet, there: &VpcSubnet) -> Passage {
        if here.id == there.id {
            return Passage::Open;
        }
        let (Some(from), Some(to)) = (Cidr::parse(&here.cidr), Cidr::parse(&there.cidr)) else {
            return Passage::Unknown;
        };
        let (from, to) = (Peer::Within(from), Peer::Within(to));
        self.acl(here, true, to, HTTPS)
            .and(|| self.acl(there, false, from, HTTPS))
            .and(|| self.acl(there, true, from, ANSWERS))
            .and(|| self.acl(here, false, to, ANSWERS))
    }

    fn acl(&self, subnet: &VpcSubnet, egress: bool, peer: Peer, ports: (u16, u16)) -> Passage {
        let acl = self.acls.and_then(|acls| acls.iter().find(|acl| acl.subnets.contains(&subnet.id)));
        let Some(acl) = acl else { return Passage::Unknown };
        let rule = match decide(acl, egress, peer, ports) {
            Decision::Allowed => return Passage::Open,
            Decision::Open => return Passage::Unknown,
            Decision::Denied(number) => number,
        };
        Passage::Refused(Box::new(hop::denied(acl, &subnet.id, egress, ports, rule)))
    }

    /// The machine's own groups.
    fn rules_out(&self, peer: Peer, to: &Inside) -> Passage {
        self.permit(self.own_groups(), true, peer, to.groups, &format!("to {}", to.kind))
    }

    fn own_groups(&self) -> &'w [String] {
        self.instance.map_or(&[], |instance| &instance.groups)
    }

    /// The groups of the target. They accept the machine by its address or by its groups.
    fn rules_in(&self, inside: &Inside) -> Passage {
        let Some(instance) = self.instance else { return Passage::Unknown };
        let Some(address) = instance.private_ip.as_deref().and_then(Cidr::parse) else { return Passage::Unknown };
        let from = Peer::Within(address);
        self.permit(inside.groups, false, from, &instance.groups, &format!("of {}", inside.kind))
    }

    fn permit(&self, groups: &[String], egress: bool, peer: Peer, peers: &[String], whose: &str) -> Passage {
        let rules: Option<Vec<&GroupRules>> = groups.iter().map(|id| self.groups.get(id.as_str()).copied()).collect();
        let (Some(rules), Some(first)) = (rules, groups.first()) else { return Passage::Unknown };
        match filters::permitted(rules.iter().flat_map(|group| &group.rules), egress, peer, peers) {
            Share::All => return Passage::Open,
            Share::Some => return Passage::Unknown,
            Share::None => {}
        }
        Passage::Refused(Box::new(hop::not_permitted(first, groups, egress, peers, whose)))
    }

    /// Groups and ACL of the machine towards the internet.
    fn filters_out(&self, here: &VpcSubnet) -> Passage {
        self.permit(self.own_groups(), true, Peer::Internet, &[], "to the internet")
            .and(|| self.acl(here, true, Peer::Internet, HTTPS))
            .and(|| self.acl(here, false, Peer::Internet, ANSWERS))
    }

    /// To public addresses, those of the cluster's endpoint or a service's.
    fn to_internet(&self, here: &VpcSubnet, cluster: Option<&EksCluster>) -> Passage {
        self.filters_out(here).and(|| self.way_out(here, cluster))
    }

    fn way_out(&self, here: &VpcSubnet, cluster: Option<&EksCluster>) -> Passage {
        let Some(table) = self.table(here) else { return Passage::Unknown };
        let Some(route) = default_route(table) else {
            return Passage::Refused(Box::new(hop::no_default(table, here)))
                .unless(has_exceptions(table, cluster.is_some()));
        };
        let passage = match kind(&route.target) {
            _ if route.state == "blackhole" => Passage::Refused(Box::new(hop::blackhole(table, here, route))),
            "igw" => match self.instance.and_then(|instance| instance.public_ip.as_deref()) {
                Some(address) => self.admitted(&[address], cluster),
                None => Passage::Refused(Box::new(hop::no_address(table, here, route))),
            },
            "nat" => self.by_nat(here, &route.target, cluster),
            _ => Passage::Unknown,
        };
        passage.unless(has_exceptions(table, cluster.is_some()))
    }

    fn by_nat(&self, here: &VpcSubnet, id: &str, cluster: Option<&EksCluster>) -> Passage {
        let Some(nat) = self.gateways.and_then(|all| all.iter().find(|nat| nat.id == id)) else {
            return Passage::Unknown;
        };
        match nat.state.as_str() {
            "available" => {}
            "failed" | "deleting" | "deleted" => return Passage::Refused(Box::new(hop::broken(nat))),
            _ => return Passage::Unknown,
        }
        let is_public = nat.connectivity.as_deref() != Some("private") && !nat.public_ips.is_empty();
        let Some(place) = nat.subnet.as_deref().and_then(|id| self.subnet(id)).filter(|_| is_public) else {
            return Passage::Unknown;
        };
        let Some(table) = self.table(place) else { return Passage::Unknown };
        let onward = match default_route(table) {
            Some(route) if kind(&route.target) == "igw" && route.state == "active" => Passage::Open,
            Some(route) if kind(&route.target) == "nat" || route.state == "blackhole" => {
                Passage::Refused(Box::new(hop::nat_not_public(nat, table, place)))
            }
            None => Passage::Refused(Box::new(hop::nat_not_public(nat, table, place))),
            Some(_) => Passage::Unknown,
        };
        let own: Vec<&str> = nat.public_ips.iter().map(String::as_str).collect();
        let machines = Cidr::parse(&here.cidr).map(Peer::Within);
        let acls = || match machines.filter(|_| place.id != here.id) {
            Some(machines) => self
                .acl(place, false, machines, HTTPS)
                .and(|| self.acl(place, true, Peer::Internet, HTTPS))
                .and(|| self.acl(place, false, Peer::Internet, ANSWERS_OF_NAT))
                .and(|| self.acl(place, true, machines, ANSWERS)),
            None => Passage::Open,
        };
        onward.unless(has_exceptions(table, cluster.is_some())).and(acls).and(|| self.admitted(&own, cluster))
    }

    /// Whether the public endpoint accepts the machine's outgoing addresses.
    fn admitted(&self, own: &[&str], cluster: Option<&EksCluster>) -> Passage {
        let Some(cluster) = cluster else { return Passage::Open };
        let of_address = |address: &&str| {
            let Some(peer) = Cidr::parse(address).map(Peer::Within) else { return Share::Some };
            cluster.public_cidrs.iter().map(|cidr| peer.covered_by(cidr)).max().unwrap_or(Share::All)
        };
        let shares: Vec<Share> = own.iter().map(of_address).collect();
        match (shares.iter().min(), shares.iter().max()) {
            (Some(Share::All), _) => Passage::Open,
            (_, Some(Share::None)) => {
                Passage::Refused(Box::new(hop::not_admitted(self.cluster_name, &cluster.public_cidrs, own)))
            }
            _ => Passage::Unknown,
        }
    }

    /// The table of the subnet, otherwise the main one.
    fn table(&self, subnet: &VpcSubnet) -> Option<&'w RouteTable> {
        let tables = self.tables?;
        let own = tables.iter().find(|table| table.subnets.contains(&subnet.id));
        own.or_else(|| tables.iter().find(|table| table.main))
    }
}

fn default_route(table: &RouteTable) -> Option<&VpcRoute> {
    table.routes.iter().find(|route| route.cidr.as_deref() == Some(ANYWHERE))
}

/// nodewhy does not judge what a policy allows: one that is not open may or may not.
fn policy(endpoint: &VpcEndpoint) -> Passage {
    if endpoint.policy_open { Passage::Open } else { Passage::Unknown }
}

/// `nat` of `nat-0abc`.
fn kind(target: &str) -> &str {
    target.split('-').next().unwrap_or_default()
}

/// `com.amazonaws.eu-west-1.ecr.api` is that of `ecr.api`; China's begin with `cn.`.
fn is_of(name: &str, service: &str) -> bool {
    let name = name.strip_prefix("cn.").unwrap_or(name);
    name.strip_prefix("com.amazonaws.").and_then(|rest| rest.split_once('.')).is_some_and(|(_, of)| of == service)
}

/// Whether some addresses have another route than the default. Gateway endpoints are for S3 and DynamoDB. Private
/// ranges concern services too, to whose names a private zone may give other addresses; the cluster's own name is
/// EKS's.
fn has_exceptions(table: &RouteTable, of_cluster: bool) -> bool {
    let is_plain = |route: &VpcRoute| match (&route.cidr, &route.prefix_list) {
        (_, Some(_)) => kind(&route.target) == "vpce",
        (Some(cidr), None) => {
            let is_private = || Peer::Internet.covered_by(cidr) == Share::None;
            route.target == "local" || cidr == ANYWHERE || of_cluster && is_private()
        }
        // IPv6
        (None, None) => true,
    };
    !table.routes.iter().all(is_plain)
}

#[cfg(test)]
mod tests;
