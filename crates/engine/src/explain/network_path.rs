//! The machine's way to the API server and to AWS, as EC2 and EKS describe it: the questions to them, and the common
//! part of the rules about that way.

mod address;
mod filters;
pub(crate) mod hop;
mod walk;

use crate::api::{Blame, Confidence, Evidence, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::aws::{self, Aws};
use crate::cluster_state::memo::Memo;
use crate::facts::proxy;
use crate::objects::{EksCluster, Instance, Node};
use hop::RefusingHop;
use logs::fact::Reason;
use std::collections::BTreeSet;
use walk::{Api, Passage, Way};

/// No kubelet joins without these: all EKS images ask EC2 for the machine's name at boot.
/// Source: awslabs/amazon-eks-ami v20260213 nodeadm/internal/api/status.go `getPrivateDNSName`; Amazon EKS user guide,
/// "Deploy private clusters with limited internet access".
const TO_JOIN: &[Api] = &[Api::Cluster, Api::Service("ec2")];
/// No image can be pulled from ECR without these: its layers are in S3.
/// Source: the same guide.
const TO_PULL: &[Api] = &[Api::Service("ecr.api"), Api::Service("ecr.dkr"), Api::Service("s3")];
/// Other services that a machine's pods may need.
const FURTHER: &[Api] = &[Api::Service("sts"), Api::Service("eks")];

/// The number of Nodes that nodewhy asks about to find one in the machine's place.
const NEIGHBORS: usize = 5;

/// The questions about the way that nodewhy can name so far.
#[derive(Debug, Default)]
pub struct NetworkQuestions<'w> {
    pub instances: BTreeSet<&'w str>,
    pub vpc: Option<&'w str>,
    pub dhcp_options: Option<&'w str>,
    pub groups: BTreeSet<&'w str>,
}

/// Whether the machine runs and waits for something from the network.
fn stands<'w>(case: &Case<'w>) -> Option<(&'w Instance, &'w str)> {
    let is_up = case.node.is_some_and(Node::is_ready);
    if !matches!(case.stage(), Stage::Join | Stage::Initialize) || is_up {
        return None;
    }
    let (instance, _) = case.cluster.aws().instance(case.instance_id()?).known()?;
    Some((instance, instance.vpc.as_deref().filter(|_| instance.state == "running")?))
}

pub(crate) fn questions<'w>(case: &Case<'w>) -> NetworkQuestions<'w> {
    let aws = case.cluster.aws();
    let Some((instance, vpc)) = stands(case) else { return NetworkQuestions::default() };
    let of_cluster = cluster(case).into_iter().flat_map(|cluster| &cluster.groups);
    let endpoints = aws.vpc_endpoints(vpc).known().into_iter().flat_map(|(endpoints, _)| endpoints);
    let of_endpoints = endpoints.filter(|endpoint| endpoint.private_dns).flat_map(|endpoint| &endpoint.groups);
    NetworkQuestions {
        instances: neighbors(case).into_iter().filter_map(Node::instance_id).collect(),
        vpc: Some(vpc),
        dhcp_options: dhcp_options(aws, vpc),
        groups: instance.groups.iter().chain(of_cluster).chain(of_endpoints).map(String::as_str).collect(),
    }
}

fn cluster<'w>(case: &Case<'w>) -> Option<&'w EksCluster> {
    Some(case.cluster.aws().cluster(case.cluster_name()?).known()?.0)
}

/// A VPC without options reports `default`.
fn dhcp_options<'w>(aws: &'w Aws, vpc: &str) -> Option<&'w str> {
    aws.vpc(vpc).known()?.0.dhcp_options.as_deref().filter(|id| *id != "default")
}

/// Ready Nodes in the machine's zone, or in any zone if that is not known.
fn neighbors<'w>(case: &Case<'w>) -> Vec<&'w Node> {
    const ZONE: &str = "topology.kubernetes.io/zone";
    static READY: Memo<Vec<String>> = Memo::new("Nodes that are Ready in a zone");
    let meta = case.claim.map(|claim| &claim.metadata).or(case.node.map(|node| &node.metadata));
    let zone = meta.and_then(|meta| meta.label(ZONE)).unwrap_or_default();
    let cluster = case.cluster;
    let names = cluster.once(&READY, zone, || {
        let is_there = |node: &&Node| zone.is_empty() || node.metadata.label(ZONE) == Some(zone);
        let ready = cluster.nodes().filter(|node| node.is_ready()).filter(is_there);
        ready.take(NEIGHBORS).map(|node| node.name().to_owned()).collect()
    });
    names.iter().filter_map(|name| cluster.node(name)).collect()
}

/// A Ready Node in the machine's subnet, with no more groups: it gets through.
fn witness<'w>(case: &Case<'w>, instance: &Instance) -> Option<&'w Node> {
    let is_alike = |other: &Instance| {
        other.subnet == instance.subnet
            && other.public_ip.is_some() == instance.public_ip.is_some()
            && !other.groups.is_empty()
            && other.groups.iter().all(|group| instance.groups.contains(group))
    };
    neighbors(case).into_iter().find(|node| {
        let other = node.instance_id().and_then(|id| case.cluster.aws().instance(id).known());
        other.is_some_and(|(other, _)| is_alike(other))
    })
}

/// Whether the network plugin or kube-proxy comes from ECR, and not from a mirror in the VPC.
fn agents_are_in_ecr(case: &Case) -> bool {
    const AGENTS: [&str; 2] = ["aws-node", "kube-proxy"];
    let agents = case.cluster.daemon_sets().filter(|set| AGENTS.contains(&&*set.metadata.name));
    let mut images = agents.flat_map(|set| &set.spec.template.spec.containers).map(|container| &container.image);
    images.any(|image| image.contains(".dkr.ecr."))
}

fn way<'w>(case: &Case<'w>, instance: &'w Instance, vpc: &str) -> Way<'w> {
    let aws = case.cluster.aws();
    let questions = questions(case);
    let group = |id: &'w str| Some((id, aws.security_group(id).known()?.0));
    let name_servers = match (aws.vpc(vpc).known(), dhcp_options(aws, vpc)) {
        (Some(_), None) => Some(&[][..]),
        (_, Some(id)) => aws.dhcp_options(id).known().map(|(options, _)| options.name_servers.as_slice()),
        (None, None) => None,
    };
    Way {
        instance: Some(instance),
        cluster_name: case.cluster_name().unwrap_or_default(),
        cluster: cluster(case),
        dns: aws.dns(vpc).known().map(|(dns, _)| dns),
        name_servers,
        subnets: aws.subnets(vpc).known().map(|(subnets, _)| subnets.as_slice()),
        tables: aws.route_tables(vpc).known().map(|(tables, _)| tables.as_slice()),
        acls: aws.network_acls(vpc).known().map(|(acls, _)| acls.as_slice()),
        groups: questions.groups.into_iter().filter_map(group).collect(),
        endpoints: aws.vpc_endpoints(vpc).known().map(|(endpoints, _)| endpoints.as_slice()),
        gateways: aws.nat_gateways(vpc).known().map(|(gateways, _)| gateways.as_slice()),
    }
}

/// The verdict of the way about one of its causes.
pub(crate) fn opinion(case: &Case, cause: &'static str) -> Option<Opinion> {
    let (instance, vpc) = stands(case)?;
    // A proxy knows other ways.
    let text = case.class().and_then(|class| class.spec.user_data.as_deref());
    if text.is_some_and(|text| proxy::in_text(text).is_some()) {
        return None;
    }
    let way = way(case, instance, vpc);
    let needed = match case.stage() {
        Stage::Join => TO_JOIN,
        _ if agents_are_in_ecr(case) => TO_PULL,
        _ => return None,
    };
    let passages: Vec<(Api, Passage)> = needed.iter().map(|api| (*api, way.to(*api))).collect();
    let refused = passages.iter().find_map(|(api, passage)| match passage {
        Passage::Refused(obstacle) => Some((*api, obstacle)),
        Passage::Open | Passage::Unknown => None,
    });
    let Some((api, obstacle)) = refused else {
        let tables = case.cluster.aws().observation(aws::ROUTE_TABLES, vpc);
        let tables = tables.filter(|_| passages.iter().all(|(_, passage)| *passage == Passage::Open))?;
        let because = format!("names, routes, ACLs and security groups let the instance through to {}", listed(needed));
        return Some(Opinion::ruled_out(tables, because));
    };
    if obstacle.cause != cause {
        return None;
    }
    if let Some(node) = witness(case, instance) {
        // A Node that joined long ago says nothing of what the boot needs.
        let is_newer = node.metadata.creation_timestamp.is_some_and(|at| at >= case.wait.since);
        if api == Api::Cluster || is_newer {
            return Some(Opinion::ruled_out(
                node,
                "it is Ready, in the instance's subnet and with its security groups",
            ));
        }
        // What refuses may be a hop that this Node gets past on its way to the API server.
        if way.to(Api::Cluster) != Passage::Open {
            return None;
        }
    }
    finding(case, &way, api, obstacle).into()
}

fn timeout_on_console(case: &Case, id: &str) -> Option<Evidence> {
    let (console, at) = case.cluster.aws().console(id).known()?;
    let fact = console.journey.open().into_iter().find(|fact| fact.reason == Some(Reason::Timeout))?;
    let because = format!("{} printed this while the instance booted", fact.program);
    Some(Evidence::new(format!("{} {id}", aws::CONSOLE), "Output", fact.last.text.clone(), because).told_by_aws(at))
}

/// The command that shows a thing.
fn see(kind: &str, id: &str) -> Option<String> {
    let call = match kind {
        "RouteTable" => "ec2 describe-route-tables --route-table-ids",
        "NetworkAcl" => "ec2 describe-network-acls --network-acl-ids",
        "SecurityGroup" => "ec2 describe-security-groups --group-ids",
        "Subnet" => "ec2 describe-subnets --subnet-ids",
        "NatGateway" => "ec2 describe-nat-gateways --nat-gateway-ids",
        "VpcEndpoint" => "ec2 describe-vpc-endpoints --vpc-endpoint-ids",
        "VPC" => "ec2 describe-vpc-attribute --attribute enableDnsHostnames --vpc-id",
        "Cluster" => "eks describe-cluster --name",
        _ => return None,
    };
    Some(format!("aws {call} {id}"))
}

fn listed(apis: &[Api]) -> String {
    apis.iter().map(Api::to_string).collect::<Vec<_>>().join(", ")
}

fn finding(case: &Case, way: &Way, api: Api, obstacle: &RefusingHop) -> Finding {
    let aws = case.cluster.aws();
    let id = case.instance_id().unwrap_or_default();
    let vpc = way.vpc();
    let RefusingHop { kind, id: thing, call, field, observed, said, fix, .. } = obstacle;
    let at = [vpc, thing].into_iter().find_map(|about| aws.observation(call, about)?.at);
    // A name may lead to a way that is not seen, by a private zone or a proxy of the image; not where the machine says
    // that it does not get there.
    let heard = timeout_on_console(case, id);
    let confidence = if api == Api::Cluster || heard.is_some() { Confidence::Certain } else { Confidence::Likely };
    let evidence = Evidence::new(
        format!("{call} {thing}"),
        *field,
        observed.clone(),
        format!("the first hop from {id} to {api} that rejects packets"),
    );
    let also = TO_JOIN.iter().chain(TO_PULL).chain(FURTHER).filter(|other| {
        let passage = way.to(**other);
        **other != api && matches!(&passage, Passage::Refused(other) if other.id == *thing)
    });
    let mut also: Vec<String> = also.map(Api::to_string).collect();
    also.dedup();
    let finding = Finding::new(confidence, format!("{id} does not reach {api}: {said}."), evidence.told_by_aws(at))
        .blaming(Blame::object("", kind, thing))
        .fix(fix.clone())
        .inspect(format!("See {thing}"), see(kind, thing));
    let instance = aws.observation(aws::INSTANCE, id);
    let place =
        way.instance.map(|is| format!("{}, {}", is.subnet.as_deref().unwrap_or_default(), is.groups.join(", ")));
    let finding = finding.with_all(place.map(|place| {
        Evidence::new(
            format!("{} {id}", aws::INSTANCE),
            "SubnetId, SecurityGroups",
            place,
            if also.is_empty() {
                "the instance's place".to_owned()
            } else {
                format!("the instance's place; the same hop blocks it from {}", also.join(", "))
            },
        )
        .told_by_aws(instance.and_then(|instance| instance.at))
    }));
    let finding = finding.with_all(heard);
    match confidence {
        Confidence::Certain => finding,
        _ => finding.ask_aws(
            "Does a private zone give the name another address?",
            format!("aws route53 list-hosted-zones-by-vpc --vpc-id {vpc} --vpc-region REGION"),
        ),
    }
}
