//! Networks as tables: each starts from one that is well, and one thing is changed.

use super::*;
use crate::explain::network_path::hop::*;
use crate::objects::{AclEntry, GroupRule};

/// A network that owns what a [`Way`] borrows.
#[derive(Clone)]
struct Network {
    instance: Instance,
    cluster: EksCluster,
    dns: DnsAttributes,
    name_servers: Vec<String>,
    subnets: Vec<VpcSubnet>,
    tables: Vec<RouteTable>,
    acls: Vec<NetworkAcl>,
    groups: Vec<(&'static str, GroupRules)>,
    endpoints: Vec<VpcEndpoint>,
    gateways: Vec<NatGateway>,
}

const ALL: [Api; 7] = [
    Api::Cluster,
    Api::Service("ec2"),
    Api::Service("ecr.api"),
    Api::Service("ecr.dkr"),
    Api::Service("s3"),
    Api::Service("sts"),
    Api::Service("eks"),
];

#[expect(clippy::unnecessary_wraps, reason = "fields are optional")]
fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn route(cidr: &str, target: &str) -> VpcRoute {
    VpcRoute { cidr: text(cidr), target: target.to_owned(), state: "active".to_owned(), prefix_list: None }
}

fn table(id: &str, subnet: &str, routes: &[VpcRoute]) -> RouteTable {
    let local = route("10.0.0.0/16", "local");
    RouteTable {
        id: id.to_owned(),
        main: subnet.is_empty(),
        subnets: (!subnet.is_empty()).then(|| subnet.to_owned()).into_iter().collect(),
        routes: [local].iter().chain(routes).cloned().collect(),
    }
}

fn permits(egress: bool, cidr: &str) -> GroupRule {
    GroupRule { egress, protocol: "-1".to_owned(), cidrs: vec![cidr.to_owned()], ..GroupRule::default() }
}

fn admits(group: &str) -> GroupRule {
    GroupRule {
        protocol: "tcp".to_owned(),
        from: Some(443),
        to: Some(443),
        groups: vec![group.to_owned()],
        ..GroupRule::default()
    }
}

fn acl(id: &str, subnet: &str) -> NetworkAcl {
    let all = |egress| AclEntry {
        number: 100,
        egress,
        allow: true,
        protocol: "-1".to_owned(),
        cidr: text("0.0.0.0/0"),
        from: None,
        to: None,
    };
    NetworkAcl { id: id.to_owned(), subnets: vec![subnet.to_owned()], entries: vec![all(true), all(false)] }
}

fn endpoint(service: &str) -> VpcEndpoint {
    VpcEndpoint {
        id: format!("vpce-{service}"),
        type_: "Interface".to_owned(),
        service: format!("com.amazonaws.eu-west-1.{service}"),
        state: "available".to_owned(),
        private_dns: true,
        subnets: vec!["subnet-cluster".to_owned()],
        groups: vec!["sg-endpoints".to_owned()],
        route_tables: Vec::new(),
        policy_open: true,
    }
}

/// The machine in a private subnet with a NAT gateway, and a private endpoint.
fn with_nat() -> Network {
    let subnet = |id: &str, cidr: &str| VpcSubnet { id: id.to_owned(), cidr: cidr.to_owned(), owner: text("1") };
    Network {
        instance: Instance {
            state: "running".to_owned(),
            vpc: text("vpc-1"),
            subnet: text("subnet-node"),
            owner: text("1"),
            private_ip: text("10.0.1.7"),
            groups: vec!["sg-node".to_owned()],
            ..Instance::default()
        },
        cluster: EksCluster {
            endpoint_public: Some(true),
            endpoint_private: Some(true),
            public_cidrs: vec!["0.0.0.0/0".to_owned()],
            vpc: text("vpc-1"),
            subnets: vec!["subnet-cluster".to_owned()],
            groups: vec!["sg-cluster".to_owned()],
            ip_family: text("ipv4"),
            ..EksCluster::default()
        },
        dns: DnsAttributes { support: Some(true), host_names: Some(true) },
        name_servers: vec!["AmazonProvidedDNS".to_owned()],
        subnets: vec![
            subnet("subnet-node", "10.0.1.0/24"),
            subnet("subnet-cluster", "10.0.2.0/24"),
            subnet("subnet-public", "10.0.3.0/24"),
        ],
        tables: vec![
            table("rtb-main", "", &[]),
            table("rtb-node", "subnet-node", &[route("0.0.0.0/0", "nat-1")]),
            table("rtb-public", "subnet-public", &[route("0.0.0.0/0", "igw-1")]),
        ],
        acls: vec![
            acl("acl-node", "subnet-node"),
            acl("acl-cluster", "subnet-cluster"),
            acl("acl-public", "subnet-public"),
        ],
        groups: vec![
            ("sg-node", GroupRules { rules: vec![permits(true, "0.0.0.0/0")] }),
            ("sg-cluster", GroupRules { rules: vec![admits("sg-node")] }),
            ("sg-endpoints", GroupRules { rules: vec![permits(false, "10.0.0.0/16")] }),
        ],
        endpoints: Vec::new(),
        gateways: vec![NatGateway {
            id: "nat-1".to_owned(),
            state: "available".to_owned(),
            connectivity: text("public"),
            subnet: text("subnet-public"),
            public_ips: vec!["52.1.2.3".to_owned()],
        }],
    }
}

/// No way to the internet, and all endpoints.
fn private() -> Network {
    let mut network = with_nat();
    network.endpoints = ["ec2", "ecr.api", "ecr.dkr", "sts", "eks"].map(endpoint).to_vec();
    let gateway = VpcEndpoint {
        type_: "Gateway".to_owned(),
        private_dns: false,
        subnets: Vec::new(),
        groups: Vec::new(),
        route_tables: vec!["rtb-node".to_owned()],
        ..endpoint("s3")
    };
    network.endpoints.push(gateway);
    let to_s3 = VpcRoute { cidr: None, prefix_list: text("pl-1"), ..route("", "vpce-s3") };
    network.tables[1] = table("rtb-node", "subnet-node", &[to_s3]);
    network.cluster.endpoint_public = Some(false);
    network
}

/// The machine in a public subnet, with a public address and a public endpoint.
fn public() -> Network {
    let mut network = with_nat();
    network.tables[1] = table("rtb-node", "subnet-node", &[route("0.0.0.0/0", "igw-1")]);
    network.instance.public_ip = text("52.9.9.9");
    network.cluster.endpoint_private = Some(false);
    network
}

impl Network {
    fn to(&self, api: Api) -> Passage {
        Way {
            instance: Some(&self.instance),
            cluster_name: "shop",
            cluster: Some(&self.cluster),
            dns: Some(&self.dns),
            name_servers: Some(&self.name_servers),
            subnets: Some(&self.subnets),
            tables: Some(&self.tables),
            acls: Some(&self.acls),
            groups: self.groups.iter().map(|(id, rules)| (*id, rules)).collect(),
            endpoints: Some(&self.endpoints),
            gateways: Some(&self.gateways),
        }
        .to(api)
    }

    fn but(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn entry(mut self, acl: usize, egress: bool, cidr: &str, ports: Option<(u16, u16)>) -> Self {
        self.acls[acl].entries.push(AclEntry {
            number: 90,
            egress,
            allow: false,
            protocol: if ports.is_some() { "6" } else { "-1" }.to_owned(),
            cidr: text(cidr),
            from: ports.map(|p| p.0),
            to: ports.map(|p| p.1),
        });
        self
    }
}

#[test]
fn networks_that_are_well_let_everything_through() {
    for (name, network) in [
        ("NAT", with_nat()),
        ("private", private()),
        ("public", public()),
        ("no DHCP options", with_nat().but(|n| n.name_servers.clear())),
        ("endpoints beside NAT", with_nat().but(|n| n.endpoints = private().endpoints)),
        (
            "the default in the main table",
            with_nat().but(|n| {
                n.tables[0].routes.push(route("0.0.0.0/0", "nat-1"));
                n.tables.remove(1);
            }),
        ),
        (
            "private DNS off beside NAT",
            with_nat().but(|n| {
                n.endpoints = vec![VpcEndpoint { private_dns: false, ..endpoint("ec2") }];
            }),
        ),
        ("a private endpoint that names servers outside resolve", private().but(|n| n.dns.host_names = Some(true))),
        (
            "an ACL with its own rules for answers",
            with_nat().but(|n| {
                for acl in &mut n.acls {
                    for entry in &mut acl.entries {
                        entry.protocol = "6".to_owned();
                        (entry.from, entry.to) = (Some(443), Some(65535));
                    }
                }
                n.acls[2].entries.iter_mut().for_each(|entry| entry.from = Some(1));
            }),
        ),
        (
            "public access that admits the NAT gateway",
            with_nat().but(|n| {
                n.cluster.endpoint_private = Some(false);
                n.cluster.public_cidrs = vec!["10.0.0.0/8".to_owned(), "52.1.2.3/32".to_owned()];
            }),
        ),
    ] {
        for api in ALL {
            assert_eq!(network.to(api), Passage::Open, "{name}: {api}");
        }
    }
}

#[test]
fn the_first_hop_that_refuses_is_named() {
    const EC2: Api = Api::Service("ec2");
    for (name, network, api, cause, id) in vec![
        ("no route", with_nat().but(|n| n.tables[1].routes.truncate(1)), EC2, NO_ROUTE, "rtb-node"),
        ("no route in the main table", with_nat().but(|n| drop(n.tables.remove(1))), EC2, NO_ROUTE, "rtb-main"),
        (
            "blackhole",
            with_nat().but(|n| n.tables[1].routes[1].state = "blackhole".to_owned()),
            EC2,
            NO_ROUTE,
            "rtb-node",
        ),
        ("NAT failed", with_nat().but(|n| n.gateways[0].state = "failed".to_owned()), EC2, NO_ROUTE, "nat-1"),
        ("NAT in a private subnet", with_nat().but(|n| n.tables[2].routes.truncate(1)), EC2, NO_ROUTE, "rtb-public"),
        ("no public address", public().but(|n| n.instance.public_ip = None), EC2, NO_PUBLIC_ADDRESS, "subnet-node"),
        (
            "the same, to the cluster",
            public().but(|n| n.instance.public_ip = None),
            Api::Cluster,
            NO_PUBLIC_ADDRESS,
            "subnet-node",
        ),
        ("egress", with_nat().but(|n| n.groups[0].1.rules.clear()), EC2, FILTERED, "sg-node"),
        (
            "egress to the endpoint",
            private().but(|n| n.groups[0].1.rules = vec![permits(true, "10.0.1.0/24")]),
            EC2,
            FILTERED,
            "sg-node",
        ),
        (
            "the cluster's group",
            with_nat().but(|n| n.groups[1].1.rules = vec![admits("sg-other")]),
            Api::Cluster,
            FILTERED,
            "sg-cluster",
        ),
        (
            "the endpoint's group",
            private().but(|n| n.groups[2].1.rules = vec![permits(false, "10.9.0.0/16")]),
            EC2,
            FILTERED,
            "sg-endpoints",
        ),
        ("ACL out", with_nat().entry(0, true, "0.0.0.0/0", Some((443, 443))), EC2, FILTERED, "acl-node"),
        ("ACL answers", with_nat().entry(0, false, "0.0.0.0/0", Some((1024, 65535))), EC2, FILTERED, "acl-node"),
        ("ACL of the endpoint", private().entry(1, false, "10.0.1.0/24", None), Api::Cluster, FILTERED, "acl-cluster"),
        ("ACL of the NAT", with_nat().entry(2, false, "10.0.0.0/16", None), EC2, FILTERED, "acl-public"),
        (
            "private DNS off",
            private().but(|n| n.endpoints[0].private_dns = false),
            EC2,
            PRIVATE_DNS_MISSING,
            "vpce-ec2",
        ),
        (
            "no S3 in this table",
            private().but(|n| n.endpoints[5].route_tables = vec!["rtb-public".to_owned()]),
            Api::Service("s3"),
            NO_ROUTE,
            "rtb-node",
        ),
        ("no endpoint", private().but(|n| n.endpoints.truncate(1)), Api::Service("ecr.api"), NO_ROUTE, "rtb-node"),
        ("no DNS", with_nat().but(|n| n.dns.support = Some(false)), Api::Cluster, NAME_UNRESOLVED, "vpc-1"),
        ("no host names", private().but(|n| n.dns.host_names = Some(false)), EC2, NAME_UNRESOLVED, "vpc-1"),
        (
            "no host names, to the cluster",
            private().but(|n| {
                n.cluster.endpoint_public = Some(true);
                n.dns.host_names = Some(false);
            }),
            Api::Cluster,
            NAME_UNRESOLVED,
            "vpc-1",
        ),
        (
            "public access",
            public().but(|n| n.cluster.public_cidrs = vec!["52.1.2.3/32".to_owned()]),
            Api::Cluster,
            ACCESS_REFUSED,
            "shop",
        ),
        (
            "public access by NAT",
            with_nat().but(|n| {
                n.cluster.endpoint_private = Some(false);
                n.cluster.public_cidrs = vec!["203.0.113.0/24".to_owned()];
            }),
            Api::Cluster,
            ACCESS_REFUSED,
            "shop",
        ),
    ] {
        let Passage::Refused(obstacle) = network.to(api) else { panic!("{name}: {:?}", network.to(api)) };
        assert_eq!((obstacle.cause, obstacle.id.as_str()), (cause, id), "{name}: {}", obstacle.said);
    }
}

#[test]
fn what_is_not_understood_is_no_fault() {
    const EC2: Api = Api::Service("ec2");
    let no_way = || with_nat().but(|n| n.tables[1].routes.truncate(1));
    for (name, network, api) in [
        ("transit gateway", with_nat().but(|n| n.tables[1].routes[1].target = "tgw-1".to_owned()), EC2),
        ("virtual private gateway", with_nat().but(|n| n.tables[1].routes[1].target = "vgw-1".to_owned()), EC2),
        ("appliance", with_nat().but(|n| n.tables[1].routes[1].target = "eni-1".to_owned()), EC2),
        ("endpoints behind a peering", no_way().but(|n| n.tables[1].routes.push(route("10.9.0.0/16", "pcx-1"))), EC2),
        ("two halves", no_way().but(|n| n.tables[1].routes.push(route("0.0.0.0/1", "nat-1"))), EC2),
        (
            "prefix list",
            no_way().but(|n| {
                n.tables[1].routes.push(VpcRoute { cidr: None, prefix_list: text("pl-9"), ..route("", "tgw-1") });
            }),
            EC2,
        ),
        ("a NAT gateway that is not listed", with_nat().but(|n| n.gateways.clear()), EC2),
        ("a private NAT gateway", with_nat().but(|n| n.gateways[0].connectivity = text("private")), EC2),
        (
            "a prefix list in a group",
            with_nat().but(|n| {
                n.groups[0].1.rules =
                    vec![GroupRule { prefix_lists: vec!["pl-1".to_owned()], ..permits(true, "10.0.0.0/8") }];
            }),
            EC2,
        ),
        ("a group that is not known", with_nat().but(|n| drop(n.groups.remove(0))), EC2),
        ("a policy", private().but(|n| n.endpoints[0].policy_open = false), EC2),
        ("an endpoint that is made", private().but(|n| n.endpoints[0].state = "pending".to_owned()), EC2),
        ("own name servers", no_way().but(|n| n.name_servers = vec!["10.0.0.53".to_owned()]), EC2),
        (
            "a diverted local route",
            private().but(|n| n.tables[1].routes.push(route("10.0.2.0/24", "eni-1"))),
            Api::Cluster,
        ),
        ("another VPC", private().but(|n| n.cluster.vpc = text("vpc-2")), Api::Cluster),
        (
            "IPv6",
            public().but(|n| {
                n.cluster.ip_family = text("ipv6");
                n.instance.public_ip = None;
            }),
            Api::Cluster,
        ),
        ("a shared VPC", no_way().but(|n| n.subnets[0].owner = text("2")), EC2),
        ("some of the ACL's addresses", with_nat().entry(0, true, "52.0.0.0/8", None), EC2),
        (
            "two addresses, one admitted",
            with_nat().but(|n| {
                n.cluster.endpoint_private = Some(false);
                n.cluster.public_cidrs = vec!["52.1.2.3/32".to_owned()];
                n.gateways[0].public_ips.push("52.1.2.4".to_owned());
            }),
            Api::Cluster,
        ),
    ] {
        assert_eq!(network.to(api), Passage::Unknown, "{name}");
    }
}

/// Whatever answer is missing: the way is never refused because of that.
#[test]
fn what_was_not_told_is_no_fault() {
    for network in [with_nat(), private(), public()] {
        let groups: BTreeMap<&str, &GroupRules> = network.groups.iter().map(|(id, rules)| (*id, rules)).collect();
        let whole = || Way {
            instance: Some(&network.instance),
            cluster_name: "shop",
            cluster: Some(&network.cluster),
            dns: Some(&network.dns),
            name_servers: Some(&network.name_servers),
            subnets: Some(&network.subnets),
            tables: Some(&network.tables),
            acls: Some(&network.acls),
            groups: groups.clone(),
            endpoints: Some(&network.endpoints),
            gateways: Some(&network.gateways),
        };
        for missing in 0..1024_u32 {
            let is = |bit: u32| missing & (1 << bit) == 0;
            let way = whole();
            let way = Way {
                instance: way.instance.filter(|_| is(0)),
                cluster: way.cluster.filter(|_| is(1)),
                dns: way.dns.filter(|_| is(2)),
                name_servers: way.name_servers.filter(|_| is(3)),
                subnets: way.subnets.filter(|_| is(4)),
                tables: way.tables.filter(|_| is(5)),
                acls: way.acls.filter(|_| is(6)),
                groups: if is(7) { way.groups } else { BTreeMap::new() },
                endpoints: way.endpoints.filter(|_| is(8)),
                gateways: way.gateways.filter(|_| is(9)),
                cluster_name: "shop",
            };
            for api in ALL {
                assert!(!matches!(way.to(api), Passage::Refused(_)), "{api}: {missing:b}");
            }
        }
    }
}
