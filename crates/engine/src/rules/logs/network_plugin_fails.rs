//! The log of the network plugin or of its operator says why pods get no network.

mod cilium_pool;

use crate::explain::{logged, repair};
use crate::facts::custom_networking::custom_networking;
use crate::facts::network_plugin;
use crate::objects::Pod;
use crate::rules::prelude::*;
use logs::fact::{Fact, Reason, Trouble};

rule! {
    cause: NetworkPluginFails,
    summary: "The network plugin logged why it does not start or gets no addresses",
    stages: [Initialize, Ready],
    reads: [Nodes, NodeClasses, Pods, DaemonSets, EniConfigs, Logs],
    versions: "all; seen only in logs",
}

fn check(case: &Case) -> Option<Opinion> {
    case.cluster.asks(Input::DaemonSets);
    let root = logged::root(case, &[Trouble::CniFails])?;
    // That none is configured yet is no news where none is installed.
    let is_installed = || {
        case.cluster.missing(Input::DaemonSets).is_some()
            || case.node.is_none_or(|node| network_plugin::plugin(case, node).is_some())
    };
    // Nor where a pod says itself why it does not configure one.
    let is_explained = || case.pods().any(|pod| is_agent(pod) && pod.trouble().is_some());
    if root.fact.vague && !root.fact.ends && (!is_installed() || is_explained()) {
        return None;
    }
    if let Some(unserved) = cilium_pool::unserved(root.fact) {
        let finding = unserved.explain(case, root.finding(case), program(case, root.fact));
        return with_pods(case, finding).into();
    }
    let named = root.fact.names.get("subnet").map(String::as_str);
    let full = if named.is_none() { subnet_without_addresses(case, root.line()) } else { None };
    let typha = out_of_reach(root.fact);
    let (blame, fix) = if typha {
        let admits = "Open Typha's port (TCP 5473) between the nodes in their security groups, because calico-node \
                      reads the API server through Typha. This disrupts nothing.";
        (case.class_field("spec.securityGroupSelectorTerms"), admits)
    } else if logged::speaker(case, &root.fact.program).is_some_and(|pod| pod.daemon_set().is_none()) {
        let names = "Correct what the line names: the permissions, the settings or the version of the operator, which \
                     assigns the addresses of all nodes. If the line names an object that was created after the \
                     operator started, restart the operator (kubectl rollout restart).";
        (program(case, root.fact), names)
    } else if root.fact.reason == Some(Reason::Forbidden) {
        let grants = "Restore the permissions of the ServiceAccount that the line names: its ClusterRole and the \
                      binding, as the add-on or its manifest creates them. This disrupts nothing.";
        (program(case, root.fact), grants)
    } else if root.says(NO_SUCH_INTERFACE) {
        let replaces = "Replace the node: its metadata service lists a network interface that EC2 no longer has, so \
                        ipamd fails at each start. Newer versions of the VPC CNI skip such an interface.";
        (None, replaces)
    } else if root.fact.names.contains_key("removed") {
        let restart = "Restart the pod of the network plugin on this node, which writes its configuration again, or \
                       replace the node. A network plugin that was uninstalled may have renamed the files of the \
                       others (Cilium does with cni.exclusive).";
        (plugin(case), restart)
    } else if root.fact.ends {
        let names = "Correct what the line names: a setting or the version of the program that logged it, or what the \
                     node's image or the instance type lacks.";
        (program(case, root.fact), names)
    } else {
        let names = "Correct what the line names: the subnet's free addresses, the ENIConfig, the version of aws-node, \
                     or the subnets' tags. With prefix delegation, the subnet needs free blocks of 16 addresses: a \
                     subnet reservation keeps them free.";
        (named.or(full).and_then(|subnet| of_subnet(case, subnet)), names)
    };
    let finding = match full {
        Some(subnet) => root.finding(case).adding(&format!("The node is in subnet {subnet}.")),
        None => root.finding(case),
    };
    let finding = match named.or(full) {
        Some(subnet) => finding.inspect(
            "See how many addresses the subnet has left",
            format!(
                "aws ec2 describe-subnets --subnet-ids {subnet} --query 'Subnets[].[CidrBlock,AvailableIpAddressCount]'"
            ),
        ),
        None => finding,
    };
    let finding = with_pods(case, finding.fix(fix));
    if root.says(NO_SUCH_INTERFACE) {
        return repair::or_replace(case, finding).into();
    }
    finding.blaming(blame).into()
}

fn is_agent(pod: &Pod) -> bool {
    pod.daemon_set().is_some_and(network_plugin::is_before_the_network)
}

fn with_pods(case: &Case, finding: Finding) -> Finding {
    finding.inspect(
        "See the pods on the node",
        case.node.map(|node| format!("kubectl get pods -A -o wide --field-selector spec.nodeName={}", node.name())),
    )
}

/// EC2's code for an interface that it does not have. Sources: EC2 API reference, "Error codes";
/// aws/amazon-vpc-cni-k8s#1008, v1.20.4 pkg/awsutils/awsutils.go `DescribeAllENIs` (leaves it out).
const NO_SUCH_INTERFACE: &str = "InvalidNetworkInterfaceID.NotFound";

/// The node's subnet, if EC2 has no addresses left in it and does not name it: the only one of the class in the node's
/// zone. Custom networking (ENIConfigs) takes addresses from other subnets.
/// Source: EC2 API reference, "Error codes"; amazon-vpc-cni-k8s v1.20.4 pkg/awsutils/awsutils.go.
fn subnet_without_addresses<'w>(case: &Case<'w>, line: &str) -> Option<&'w str> {
    const EMPTY: [&str; 2] = ["InsufficientCidrBlocks", "InsufficientFreeAddressesInSubnet"];
    let is_custom = || custom_networking(case).is_some() || case.cluster.eni_configs().next().is_some();
    if !EMPTY.iter().any(|code| line.contains(code)) || is_custom() {
        return None;
    }
    let zone = case.node?.metadata.label("topology.kubernetes.io/zone")?;
    let mut in_zone = case.class()?.status.subnets.iter().filter(|subnet| subnet.zone == *zone);
    let (subnet, None) = (in_zone.next()?, in_zone.next()) else { return None };
    Some(subnet.id.as_str())
}

/// The object from which the machine gets the subnet that the line names.
fn of_subnet(case: &Case, subnet: &str) -> Option<Blame> {
    let config = case.cluster.eni_configs().find(|config| config.spec.subnet == subnet).map(|config| {
        Blame::object("crd.k8s.amazonaws.com/v1alpha1", "ENIConfig", &config.metadata.name).field("spec.subnet")
    });
    let of_class = || case.class()?.status.subnets.iter().find(|own| *own.id == *subnet);
    config.or_else(|| of_class().and_then(|_| case.class_field("spec.subnetSelectorTerms")))
}

/// Typha does not answer from another Node, so something between them drops the packets.
fn out_of_reach(fact: &Fact) -> bool {
    fact.names.contains_key("typha") && fact.reason == Some(Reason::Timeout)
}

/// The DaemonSet that sets up the network of the node.
fn plugin(case: &Case) -> Option<Blame> {
    let set = network_plugin::plugin(case, case.node?)?;
    let namespace = set.metadata.namespace.as_deref().unwrap_or_default();
    Some(Blame::object("apps/v1", "DaemonSet", &set.metadata.name).namespace(namespace))
}

/// The workload that exited by itself. Its template shows the version and settings.
fn program(case: &Case, fact: &Fact) -> Option<Blame> {
    let pod = logged::speaker(case, &fact.program)?;
    let blame = match pod.daemon_set() {
        Some(set) => Blame::object("apps/v1", "DaemonSet", set),
        // A Deployment's pod ends with a hash of its ReplicaSet and one of its own.
        None => Blame::object("apps/v1", "Deployment", pod.metadata.name.rsplitn(3, '-').last()?),
    };
    Some(blame.namespace(pod.metadata.namespace.as_deref().unwrap_or_default()))
}
