//! The Node is Ready, but its network plugin has no addresses left for its pods.

mod reason;
mod room;

use crate::facts::network_plugin::plugin;
use crate::facts::pod_addresses::{is_refusing, refusal};
use crate::facts::{cni_permissions, ipamd};
use crate::objects::{DaemonSet, Event};
use crate::rules::prelude::*;
use crate::upstream::{instance_types, vpc_cni};
use reason::Reason;
use room::{INSTANCE_TYPE, room};

rule! {
    cause: PodsGetNoAddress,
    summary: "The Node is Ready, but its pods stay in ContainerCreating because the network plugin has no addresses \
              for them",
    stages: [Ready],
    reads: [NodeClasses, Events, Pods, DaemonSets, Deployments, Logs],
    versions: "all; RESERVED_ENIS since Karpenter 0.28",
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node.filter(|n| n.is_ready())?;
    if !is_refusing(case, node) {
        return None;
    }
    let event = refusal(case, node)?;
    let zone = node.metadata.label("topology.kubernetes.io/zone");
    let pods = node.status.allocatable.get("pods").unwrap_or("an unknown number of");
    // amazon-vpc-cni-k8s v1.20.4 cmd/routed-eni-cni-plugin/cni.go `add`
    let of_vpc_cni = event.message.contains("failed to assign an IP address to container");
    let ranges = plugin(case, node).filter(|_| !of_vpc_cni);
    let room = room(case, node).filter(|_| ranges.is_none());
    let said =
        ipamd::shortage(case, node, event.first_timestamp.or_else(|| event.last_seen())).filter(|_| ranges.is_none());
    let Reason { why, blame, fix, asks, step } = match ranges {
        Some(set) => of_range(event, set, pods),
        None => Reason::of(case, node, pods, room.as_ref(), said),
    };
    let who = ranges.map_or("the VPC CNI", |set| &set.metadata.name);
    let finding = Finding::new(
        // That there are no addresses is certain; which of the reasons it is only EC2 knows.
        Confidence::Likely,
        format!(
            "Node {} is Ready, and since {} {who} has had no IP addresses for its pods: {why}.",
            node.name(),
            case.since()
        ),
        Evidence::new(
            format!("Event Pod/{}", event.involved_object.name),
            "message",
            event.said(),
            format!("{who} found no free address on the Node and could not get more"),
        ),
    )
    .with(Evidence::new(
        format!("Node/{}", node.name()),
        "status.allocatable['pods']",
        pods,
        "the scheduler assigns so many pods to the node, whether it has addresses or not",
    ))
    .with_all(room.map(|room| {
        Evidence::new(
            format!("Node/{}", node.name()),
            format!("metadata.labels['{INSTANCE_TYPE}']"),
            room.type_,
            format!("it has addresses for {} pods (AWS's limits as of {})", room.pods, instance_types::as_of()),
        )
    }))
    .with_all(said.map(|said| {
        Evidence::new(
            said.line.file.clone(),
            format!("line {}", said.line.line),
            said.line.text.clone(),
            if said.is_named { "ipamd says why it gets no addresses" } else { "a log of ipamd that names no node" },
        )
    }))
    .blaming(blame)
    .fix(fix);
    let finding = match step {
        Some((risk, text, command)) => finding.step(risk, text, command),
        None => finding,
    };
    let finding =
        finding.step(Risk::LowRisk, "Keep new pods off this node", Some(format!("kubectl cordon {}", node.name())));
    if ranges.is_some() {
        return finding.into();
    }
    let finding = if asks { ask_for_addresses(case, zone, finding) } else { finding };
    match case.pods().find(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE)) {
        // Its own rule has the better sentence.
        Some(pod) if cni_permissions::denied(case, pod).is_some() => None,
        _ => finding.into(),
    }
}

/// Only EC2 knows what is left in the subnets.
fn ask_for_addresses(case: &Case, zone: Option<&str>, finding: Finding) -> Finding {
    let of_zone = zone.map_or_else(String::new, |zone| format!(" --filters Name=availability-zone,Values={zone}"));
    let zone = zone.unwrap_or("its zone");
    let question = if room::has_prefixes(case) {
        format!(
            "Is a block of 16 addresses (/28) left in the subnets of {zone}? A free count above 16 does not prove it."
        )
    } else {
        format!("Are there free addresses in the subnets of {zone}?")
    };
    finding.ask_aws(
        question,
        format!(
            "aws ec2 describe-subnets{of_zone} --query \
             'Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]' --output text"
        ),
    )
}

/// The plugin gives each Node a range of its own and does not know how many pods come.
fn of_range(event: &Event, set: &DaemonSet, pods: &str) -> Reason {
    let (name, namespace) = (&set.metadata.name, set.metadata.namespace.as_deref().unwrap_or_default());
    let of_set = || Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
    // Source: cilium v1.17 install/kubernetes/cilium/templates/cilium-configmap.yaml.
    if event.message.contains("postIpamFailure range is full") {
        let blame = Blame::object("v1", "ConfigMap", "cilium-config").namespace(namespace);
        return Reason::new(
            format!(
                "the range that Cilium gives each Node is full, because the node may hold {pods} pods and the range \
                 has fewer addresses"
            ),
            blame.field("data['cluster-pool-ipv4-mask-size']"),
            "Give new Nodes a larger range: lower ipam.operator.clusterPoolIPv4MaskSize (Helm), because a smaller \
             number is a larger range. Existing Nodes keep theirs. Or lower maxPods in the EC2NodeClass to the size of \
             the range. Karpenter may then replace its nodes (drift).",
        );
    }
    let why = format!(
        "its range is full, because the node may hold {pods} pods and the range has fewer addresses, or it was never \
         assigned"
    );
    Reason::new(
        why,
        of_set(),
        "Give its Nodes larger ranges or more of them. Or lower maxPods in the EC2NodeClass to the size of a range. \
         Karpenter may then replace its nodes (drift).",
    )
}
