//! From the machine's interface to one API: the name, the rules of groups and ACLs, the routes and gateways; and the
//! first hop that surely refuses.
//!
//! Whatever is not understood on the way (a transit gateway, a peering, an appliance, a prefix list, a name server of
//! one's own, an answer that is missing) is unknown and never a fault.

use super::address::{Cidr, Peer, Share};
use super::filters::{self, ANSWERS, ANSWERS_OF_NAT, Decision, HTTPS, decide};
use crate::cluster_state::aws;
use crate::objects::{
    DnsAttributes, EksCluster, GroupRules, Instance, NatGateway, NetworkAcl, RouteTable, VpcEndpoint, VpcRoute,
    VpcSubnet,
};
use std::collections::BTreeMap;
use std::fmt;

/// What AWS told of the way; `None` is what nobody knows.
#[derive(Debug, Default)]
pub(crate) struct Way<'w> {
    pub instance: Option<&'w Instance>,
    pub cluster_name: &'w str,
    pub cluster: Option<&'w EksCluster>,
    pub dns: Option<&'w DnsAttributes>,
    /// By DHCP; empty where the VPC has no options, which means Amazon's.
    pub name_servers: Option<&'w [String]>,
    pub subnets: Option<&'w [VpcSubnet]>,
    pub tables: Option<&'w [RouteTable]>,
    pub acls: Option<&'w [NetworkAcl]>,
    pub groups: BTreeMap<&'w str, &'w GroupRules>,
    pub endpoints: Option<&'w [VpcEndpoint]>,
    pub gateways: Option<&'w [NatGateway]>,
}

/// Where a machine has to get to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Cluster,
    /// An AWS service, as the end of its VPC endpoints' names calls it.
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

/// A hop that refuses, and the thing to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusingHop {
    /// The rule that tells of it.
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

impl Passage {
    /// Hops in a row: one that refuses is enough, wherever it is.
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

    /// Ways side by side: only all of them refuse.
    fn any(ways: impl IntoIterator<Item = Self>) -> Self {
        ways.into_iter()
            .reduce(|first, other| match (first, other) {
                (Self::Open, _) | (_, Self::Open) => Self::Open,
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                (first, _) => first,
            })
            .unwrap_or(Self::Unknown)
    }

    /// Where a more specific rule may decide otherwise.
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

/// Who resolves names, and whether private zones count there.
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
            return Passage::Refused(Box::new(self.no_names()));
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

    fn no_names(&self) -> RefusingHop {
        let vpc = self.vpc();
        RefusingHop {
            cause: NAME_UNRESOLVED,
            kind: "VPC",
            id: vpc.to_owned(),
            call: aws::DNS,
            field: "enableDnsSupport",
            observed: "false".to_owned(),
            said: format!("the VPC {vpc} has DNS support off and no name servers of its own"),
            fix: format!("Turn on DNS support and DNS host names of {vpc}, or give it DHCP options with name servers."),
        }
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
            (true, true, Resolver::AmazonPublicOnly) if is_there => match outside() {
                Passage::Refused(obstacle) => Passage::Refused(Box::new(self.no_private_zone(&obstacle))),
                passage => passage,
            },
            _ => Passage::Unknown,
        }
    }

    /// Names that a private zone would answer lead outside, where the way ends.
    fn no_private_zone(&self, beyond: &RefusingHop) -> RefusingHop {
        let vpc = self.vpc();
        RefusingHop {
            cause: NAME_UNRESOLVED,
            kind: "VPC",
            id: vpc.to_owned(),
            call: aws::DNS,
            field: "enableDnsHostnames",
            observed: "false".to_owned(),
            said: format!(
                "the VPC {vpc} has DNS host names off, so the name leads to the public address, and {}",
                beyond.said
            ),
            fix: format!("Turn on DNS host names of {vpc}: without them its private zones are not used."),
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
            let policy = if gateway.policy_open { Passage::Open } else { Passage::Unknown };
            return self.filters_out(here, Peer::Internet, &[]).and(|| policy);
        }
        let interfaces: Vec<&VpcEndpoint> = of_service.into_iter().filter(|e| e.type_ == "Interface").collect();
        let outside = || self.to_internet(here, None);
        let Some(named) = interfaces.iter().find(|e| e.private_dns) else {
            return match (outside(), interfaces.first()) {
                (Passage::Refused(beyond), Some(endpoint)) if beyond.cause != FILTERED => {
                    Passage::Refused(Box::new(no_private_name(endpoint, &beyond)))
                }
                (passage, _) => passage,
            };
        };
        if named.state != "available" {
            return Passage::Unknown;
        }
        let inside = || {
            let inside = Inside { kind: "its VPC endpoint", subnets: &named.subnets, groups: &named.groups };
            let policy = if named.policy_open { Passage::Open } else { Passage::Unknown };
            self.to_inside(here, &inside).and(|| policy)
        };
        if resolver == Resolver::Amazon {
            return inside();
        }
        match outside() {
            Passage::Refused(beyond) => Passage::Refused(Box::new(self.no_private_zone(&beyond))),
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

    /// The ACLs of two subnets, there and back.
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
        let direction = if egress { "outbound" } else { "inbound" };
        let ports = if ports == HTTPS { "443".to_owned() } else { format!("{}-{}", ports.0, ports.1) };
        let observed = rule.map_or_else(|| "no rule allows it".to_owned(), |number| format!("rule {number} denies it"));
        let (id, of) = (&acl.id, &subnet.id);
        Passage::Refused(Box::new(RefusingHop {
            cause: FILTERED,
            kind: "NetworkAcl",
            id: id.clone(),
            call: aws::NETWORK_ACLS,
            field: if egress { "Entries, outbound" } else { "Entries, inbound" },
            said: format!("the network ACL {id} of {of} denies {direction} TCP {ports} ({observed})"),
            fix: format!(
                "Allow {direction} TCP {ports} in {id}, by a rule with a lower number than what denies it; an ACL knows no connections, so answers need a rule too."
            ),
            observed,
        }))
    }

    /// The machine's own groups.
    fn rules_out(&self, peer: Peer, to: &Inside) -> Passage {
        let groups = self.instance.map_or(&[][..], |instance| &instance.groups);
        self.permit(groups, true, peer, to.groups, &format!("to {}", to.kind))
    }

    /// The groups of what is to be reached. They admit the machine by its address or by its groups.
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
        let all = groups.join(", ");
        let (said, fix) = if egress {
            (
                format!("{all} of the machine permits no outbound 443 {whose}"),
                format!("Permit outbound 443 in {first}."),
            )
        } else {
            let machine = peers.join(", ");
            (
                format!("{all} {whose} admits no 443 from the machine ({machine})"),
                format!("Admit 443 from {machine} in {first}."),
            )
        };
        Passage::Refused(Box::new(RefusingHop {
            cause: FILTERED,
            kind: "SecurityGroup",
            id: first.clone(),
            call: aws::SECURITY_GROUP,
            field: if egress { "IpPermissionsEgress" } else { "IpPermissions" },
            observed: "no rule permits it".to_owned(),
            said,
            fix,
        }))
    }

    /// Groups and ACL of the machine towards the internet.
    fn filters_out(&self, here: &VpcSubnet, peer: Peer, peers: &[String]) -> Passage {
        let groups = self.instance.map_or(&[][..], |instance| &instance.groups);
        self.permit(groups, true, peer, peers, "to the internet")
            .and(|| self.acl(here, true, peer, HTTPS))
            .and(|| self.acl(here, false, peer, ANSWERS))
    }

    /// To public addresses, those of the cluster's endpoint or a service's.
    fn to_internet(&self, here: &VpcSubnet, cluster: Option<&EksCluster>) -> Passage {
        self.filters_out(here, Peer::Internet, &[]).and(|| self.way_out(here, cluster))
    }

    fn way_out(&self, here: &VpcSubnet, cluster: Option<&EksCluster>) -> Passage {
        let Some(table) = self.table(here) else { return Passage::Unknown };
        let route = table.routes.iter().find(|route| route.cidr.as_deref() == Some(ANYWHERE));
        let Some(route) = route else {
            return Passage::Refused(Box::new(no_default(table, here)))
                .unless(has_exceptions(table, cluster.is_some()));
        };
        let passage = match kind(&route.target) {
            _ if route.state == "blackhole" => Passage::Refused(Box::new(blackhole(table, here, route))),
            "igw" => match self.instance.and_then(|instance| instance.public_ip.as_deref()) {
                Some(address) => self.admitted(&[address], cluster),
                None => Passage::Refused(Box::new(Self::no_address(table, here, route))),
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
            "failed" | "deleting" | "deleted" => return Passage::Refused(Box::new(broken(nat))),
            _ => return Passage::Unknown,
        }
        let is_public = nat.connectivity.as_deref() != Some("private") && !nat.public_ips.is_empty();
        let Some(place) = nat.subnet.as_deref().and_then(|id| self.subnet(id)).filter(|_| is_public) else {
            return Passage::Unknown;
        };
        let Some(table) = self.table(place) else { return Passage::Unknown };
        let route = table.routes.iter().find(|route| route.cidr.as_deref() == Some(ANYWHERE));
        let onward = match route {
            Some(route) if kind(&route.target) == "igw" && route.state == "active" => Passage::Open,
            Some(route) if kind(&route.target) == "nat" || route.state == "blackhole" => {
                Passage::Refused(Box::new(nat_not_public(nat, table, place)))
            }
            None => Passage::Refused(Box::new(nat_not_public(nat, table, place))),
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

    /// Whether the public endpoint admits the addresses that the machine shows.
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
                let (name, all) = (self.cluster_name, own.join(", "));
                let admitted = cluster.public_cidrs.join(", ");
                Passage::Refused(Box::new(RefusingHop {
                    cause: ACCESS_REFUSED,
                    kind: "Cluster",
                    id: name.to_owned(),
                    call: aws::CLUSTER,
                    field: "resourcesVpcConfig.publicAccessCidrs",
                    said: format!(
                        "the public endpoint of {name} admits {admitted} only, and the machine comes from {all}"
                    ),
                    observed: admitted,
                    fix: format!(
                        "Turn on private access of {name}, which machines in its VPC then use, or add {all} to what its public endpoint admits."
                    ),
                }))
            }
            _ => Passage::Unknown,
        }
    }

    /// That of the subnet, else the main one.
    fn table(&self, subnet: &VpcSubnet) -> Option<&'w RouteTable> {
        let tables = self.tables?;
        let own = tables.iter().find(|table| table.subnets.contains(&subnet.id));
        own.or_else(|| tables.iter().find(|table| table.main))
    }

    fn no_address(table: &RouteTable, here: &VpcSubnet, route: &VpcRoute) -> RefusingHop {
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
                "Select private subnets only: take the discovery tag off {subnet}, or select by id; or set associatePublicIPAddress in the node class."
            ),
        }
    }
}

const ANYWHERE: &str = "0.0.0.0/0";

/// `nat` of `nat-0abc`.
fn kind(target: &str) -> &str {
    target.split('-').next().unwrap_or_default()
}

/// `com.amazonaws.eu-west-1.ecr.api` is that of `ecr.api`; China's begin with `cn.`.
fn is_of(name: &str, service: &str) -> bool {
    let name = name.strip_prefix("cn.").unwrap_or(name);
    name.strip_prefix("com.amazonaws.").and_then(|rest| rest.split_once('.')).is_some_and(|(_, of)| of == service)
}

/// Whether some addresses are routed otherwise than the default says. Gateway endpoints are for S3 and DynamoDB. Private
/// ranges concern services too, to whose names a private zone may give other addresses; the cluster's own name is EKS's.
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

fn routes(table: &RouteTable) -> String {
    let shown = |route: &VpcRoute| {
        let to = route.cidr.as_deref().or(route.prefix_list.as_deref()).unwrap_or("IPv6");
        format!("{to} → {}", route.target)
    };
    table.routes.iter().map(shown).collect::<Vec<_>>().join(", ")
}

fn no_default(table: &RouteTable, subnet: &VpcSubnet) -> RefusingHop {
    let (id, of) = (&table.id, &subnet.id);
    let which = if table.main && !table.subnets.contains(&subnet.id) { "the VPC's main table " } else { "" };
    RefusingHop {
        cause: NO_ROUTE,
        kind: "RouteTable",
        id: id.clone(),
        call: aws::ROUTE_TABLES,
        field: "Routes",
        observed: routes(table),
        said: format!("{which}{id} of {of} has no default route"),
        fix: format!(
            "Give {id} a default route to a NAT gateway, or the VPC the endpoints that a private cluster needs: ec2, ecr.api, ecr.dkr, s3, sts and eks."
        ),
    }
}

fn blackhole(table: &RouteTable, subnet: &VpcSubnet, route: &VpcRoute) -> RefusingHop {
    let (id, of, target) = (&table.id, &subnet.id, &route.target);
    RefusingHop {
        cause: NO_ROUTE,
        kind: "RouteTable",
        id: id.clone(),
        call: aws::ROUTE_TABLES,
        field: "Routes",
        observed: format!("{ANYWHERE} → {target}, blackhole"),
        said: format!("the default route of {id}, of {of}, leads to {target}, which is gone"),
        fix: format!("Replace the default route of {id} by one to a NAT gateway that exists."),
    }
}

fn broken(nat: &NatGateway) -> RefusingHop {
    let (id, state) = (&nat.id, &nat.state);
    RefusingHop {
        cause: NO_ROUTE,
        kind: "NatGateway",
        id: id.clone(),
        call: aws::NAT_GATEWAYS,
        field: "State",
        observed: state.clone(),
        said: format!("the NAT gateway {id} is {state}"),
        fix: format!("Make a new NAT gateway and lead the default route there instead of to {id}."),
    }
}

fn nat_not_public(nat: &NatGateway, table: &RouteTable, place: &VpcSubnet) -> RefusingHop {
    let (id, nat, subnet) = (&table.id, &nat.id, &place.id);
    RefusingHop {
        cause: NO_ROUTE,
        kind: "RouteTable",
        id: id.clone(),
        call: aws::ROUTE_TABLES,
        field: "Routes",
        observed: routes(table),
        said: format!("the NAT gateway {nat} stands in {subnet}, whose table {id} leads to no internet gateway"),
        fix: format!("Give {id} a default route to an internet gateway, or move {nat} to a public subnet."),
    }
}

fn no_private_name(endpoint: &VpcEndpoint, beyond: &RefusingHop) -> RefusingHop {
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
        fix: format!("Turn on private DNS of {id}."),
    }
}

#[cfg(test)]
mod tests;
