//! The kubelet's log says that its requests do not reach the API server.

use crate::explain::sibling_got_through::{self, Destination};
use crate::explain::{logged, networkd};
use crate::facts::network_plugin::KUBE_PROXY;
use crate::objects::Pod;
use crate::rules::prelude::*;
use logs::fact::{Reason, Trouble};

rule! {
    cause: ApiServerUnreachable,
    summary: "The kubelet logged that it does not reach the API server: the name, the route or a firewall is wrong",
    stages: [Join, Register, Initialize, Ready],
    reads: [Nodes, NodeClaims, NodeClasses, Deployments, Pods, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    let root = logged::root(case, &[Trouble::ApiServerUnreachable])?;
    // Pods ask the Service's address, which kube-proxy makes reachable: where it fails on the Node, theirs is a
    // symptom.
    let fails = |pod: &Pod| pod.daemon_set() == Some(KUBE_PROXY) && !pod.is_ready() && pod.trouble().is_some();
    if root.fact.program != "kubelet" && case.pods().any(fails) {
        return None;
    }
    let is_name = root.is_because(&[Reason::NameNotFound]);
    let fix = if is_name {
        "Make the endpoint's name resolvable for the instance. Associate the endpoint's private hosted zone with the \
         VPC, turn DNS support and host names on, and let custom name servers ask the VPC's. Or turn on the public \
         endpoint. None of this disrupts running nodes."
    } else {
        "Open the way from the instance to the endpoint: security groups of instance and control plane (443), network \
         ACLs, routes, and the addresses that a public endpoint accepts. This does not disrupt running nodes."
    };
    let finding = root.finding(case).fix(fix).inspect("Read the whole console", logged::command(case)).ask_aws(
        "Which rules, routes and name servers does the instance's subnet have (AWS's own runbook)?",
        format!(
            "aws ssm start-automation-execution --document-name AWSSupport-TroubleshootEKSWorkerNode --parameters \
                 ClusterName={},WorkerID={}",
            case.cluster_name().unwrap_or("CLUSTER"),
            case.instance_id().unwrap_or("INSTANCE")
        ),
    );
    if let Some(lost) = networkd::behind(case, &root) {
        let blamed = lost.blame.clone().or_else(|| case.class_field("spec.amiSelectorTerms"));
        return lost.in_finding(finding).blaming(blamed).into();
    }
    // Who was asked stands in user data: it is to blame for what they do not know.
    let asked = name_server(&root.fact.last.text).filter(|_| is_name);
    if let Some(own) = asked.and_then(|asked| case.user_data_naming(&[asked])) {
        return finding
            .blaming(own)
            .fix(
                "Let the instance use the VPC's name server, or let the name servers in user data forward to it: they \
                 do not know the endpoint's name. Only new nodes get the change.",
            )
            .into();
    }
    if let Some(sibling) = sibling_got_through::sibling(case, Destination::ApiServer) {
        return sibling.in_finding(case, finding).into();
    }
    // The name and its zone are the cluster's.
    let zone = || Some(Blame::object("", "Route53HostedZone", endpoint(&root.fact.last.text)?));
    let cluster = case.cluster_name().map(|cluster| Blame::object("", "Cluster", cluster)).or_else(zone);
    // Of the way there it has only the choice of subnet and groups.
    finding.blaming(cluster.filter(|_| is_name).or_else(|| case.class_field("spec.subnetSelectorTerms"))).into()
}

/// The address of the name server that Go's resolver asked, from its message.
/// Source: Go 1.26 net/net.go `DNSError.Error`: `lookup NAME on SERVER: …`.
fn name_server(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("lookup ")?.1.split_once(" on ")?;
    rest.split_once(":53").map(|(server, _)| server).filter(|server| !server.is_empty())
}

/// The EKS endpoint that the kubelet looked up. Its private hosted zone has the same name.
/// Source: <https://docs.aws.amazon.com/eks/latest/userguide/cluster-endpoint.html>.
fn endpoint(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("lookup ")?;
    rest.split([' ', ':']).next().filter(|host| host.ends_with(".eks.amazonaws.com"))
}
