//! Why the VPC CNI has no addresses for the pods of a Node: its own log decides, then the settings that nodewhy sees.

use super::room::{Room, has_prefixes};
use crate::api::Text;
use crate::facts::custom_networking::{custom_networking, eni_config_of};
use crate::facts::ipamd::{IpamdLine, Shortage};
use crate::objects::{DaemonSet, Node, NodeClass, Pod};
use crate::rules::prelude::*;
use crate::upstream::karpenter::{Version, image_tag};
use crate::upstream::vpc_cni;

/// What stops the addresses, as a clause, and what to change.
pub(super) struct Reason {
    pub(super) why: String,
    pub(super) blame: Blame,
    pub(super) fix: Text,
    /// Whether the free addresses of the subnets are still a question.
    pub(super) asks: bool,
    /// What to look at or to do first, and the command.
    pub(super) step: Option<(Risk, &'static str, String)>,
}

impl Reason {
    pub(super) fn new(why: String, blame: Blame, fix: impl Into<Text>) -> Self {
        Self { why, blame, fix: fix.into(), asks: false, step: None }
    }

    fn asking(self) -> Self {
        Self { asks: true, ..self }
    }

    pub(super) fn of(case: &Case, node: &Node, pods: &str, room: Option<&Room>, said: Option<IpamdLine>) -> Self {
        if let Some(class) = case.class().filter(|class| !class.spec.pod_subnet_selector_terms.is_empty()) {
            return outside_of_zone(class, node).asking();
        }
        match said.map(|said| (said.shortage, told(said))) {
            Some((Shortage::Blocks, told)) => without_blocks(case, node, &told),
            Some((Shortage::Addresses, told)) => without_addresses(case, node, &told),
            Some((Shortage::Interfaces, told)) => match room {
                Some(room) if room.suffices => foreign_interfaces(case, node, (pods, room), &told),
                Some(room) => too_many_pods(case, node, pods, room),
                None => at_the_limit(case, node, pods, &told),
            },
            None => match room {
                _ if serves_no_pod(case)
                    && let Some(set) = custom_networking(case) =>
                {
                    without_interface(set, node).asking()
                }
                Some(room) if room.suffices => full_subnet(case, node, pods, room).asking(),
                Some(room) => too_many_pods(case, node, pods, room),
                None => unknown_room(case, node, pods).asking(),
            },
        }
    }
}

/// Who says so.
fn told(said: IpamdLine) -> String {
    let who = if said.is_named { "ipamd logs" } else { "ipamd, whose log names no node, logs" };
    who.to_owned()
}

fn outside_of_zone(class: &NodeClass, node: &Node) -> Reason {
    let (named, there) = match node.metadata.label("topology.kubernetes.io/zone") {
        Some(zone) => (format!(" {zone}"), format!("in {zone}")),
        None => (String::new(), "there".to_owned()),
    };
    Reason::new(
        format!(
            "{} {} selects separate subnets for pods (podSubnetSelectorTerms). None of them is in the Node's \
             zone{named}, or those {there} are full",
            class.kind,
            class.name()
        ),
        Blame::class(class).field("spec.podSubnetSelectorTerms"),
        "Select a pod subnet with free addresses in every zone in which subnetSelectorTerms has a subnet: a network \
         interface must be in the zone of its node. New nodes then use it.",
    )
}

/// EC2 takes a prefix from a block of 16 addresses that begins at a multiple of 16.
/// Source: amazon-vpc-cni-k8s v1.20.4 docs/prefix-and-ip-target.md, pkg/ipamd/ipamd.go `increaseDatastorePool`.
fn without_blocks(case: &Case, node: &Node, told: &str) -> Reason {
    Reason::new(
        format!(
            "{told} InsufficientCidrBlocks: the subnet has no free block of 16 addresses (/28), which prefix \
             delegation needs"
        ),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        FREE_BLOCKS,
    )
}

const FREE_BLOCKS: &str = "Give the pods a subnet with free /28 blocks, and reserve a range for prefixes there (aws \
                           ec2 create-subnet-cidr-reservation). Or set ENABLE_PREFIX_DELEGATION=false on aws-node and \
                           lower maxPods to the single addresses of the instance types. Single addresses that are free \
                           do not help.";

fn without_addresses(case: &Case, node: &Node, told: &str) -> Reason {
    Reason::new(
        format!("{told} InsufficientFreeAddressesInSubnet: the subnet of the pods has no free addresses"),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        LARGER_SUBNETS,
    )
}

const LARGER_SUBNETS: &str = "Give the pods larger subnets (a secondary CIDR with custom networking), or set aws-node \
                              to keep fewer addresses warm (WARM_IP_TARGET, MINIMUM_IP_TARGET).";

/// Before 1.23 ipamd adds interfaces that it does not own to its count and takes none off.
/// Source: amazon-vpc-cni-k8s v1.20.4, v1.22.4, v1.23.0 pkg/ipamd/ipamd.go `filterUnmanagedENIs` (#3660).
fn foreign_interfaces(case: &Case, node: &Node, (pods, room): (&str, &Room), told: &str) -> Reason {
    const COUNTS_DOWN: Version = Version(1, 23, 0);
    let pod = case.pods().find(|pod| pod.daemon_set() == Some(vpc_cni::AWS_NODE));
    let image = pod.and_then(|pod| pod.spec.containers.iter().find(|c| c.image.contains("amazon-k8s-cni")));
    let version = image.and_then(|container| Version::parse(image_tag(&container.image)?));
    let type_ = room.type_;
    let why = format!(
        "{told} that the limit of network interfaces is reached, although {type_} has addresses for {} pods and the \
         node may hold {pods}: it also counts interfaces that it does not own (tag no_manage)",
        room.pods
    );
    let blame = of_aws_node(case, node, "spec.template.spec.containers");
    if version.is_some_and(|version| version >= COUNTS_DOWN) {
        return Reason::new(
            why,
            blame,
            "Detach the interfaces that the VPC CNI does not own from the node. Or lower maxPods of such nodes to what \
             the other interfaces have addresses for.",
        );
    }
    let restart = pod.map(|pod| {
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        format!("kubectl delete pod -n {namespace} {}", pod.metadata.name)
    });
    let reason = Reason::new(
        why,
        blame,
        "Restart aws-node on this node, so that it counts again, and update the VPC CNI to 1.23 or later. Before, its \
         count of such interfaces only grows. If they are still attached, lower maxPods of such nodes instead.",
    );
    Reason { step: restart.map(|command| (Risk::Mutating, "Restart aws-node on this node", command)), ..reason }
}

/// The type of the instance is unknown, or it has prefixes.
fn at_the_limit(case: &Case, node: &Node, pods: &str, told: &str) -> Reason {
    Reason::new(
        format!(
            "{told} that the limit of network interfaces is reached: the node may hold {pods} pods, which is more than \
             its interfaces have addresses for, or ipamd also counts interfaces that it does not own"
        ),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        "Lower maxPods of such nodes to the addresses of their instance type. If other interfaces are attached to the \
         node, detach them and restart aws-node there.",
    )
}

/// Whether pods wait for an address, and none with its own address has ever run on the Node.
fn serves_no_pod(case: &Case) -> bool {
    let mut own = case.pods().filter(|pod| !pod.spec.host_network).peekable();
    own.peek().is_some() && !own.any(Pod::has_started)
}

/// With custom networking the first interface serves no pods, so without another one no pod gets an address. ipamd
/// goes on without a word if it cannot read the ENIConfig.
/// Sources: amazon-vpc-cni-k8s v1.20.4 README.md `AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG`; amazon-vpc-cni-k8s#2416.
fn without_interface(set: &DaemonSet, node: &Node) -> Reason {
    let (name, from) = eni_config_of(set, node);
    let from = from.map_or_else(String::new, |from| format!(" (the Node's {from})"));
    let reason = Reason::new(
        format!(
            "with custom networking the first network interface serves no pods, and no pod on the node has ever had an \
             address. So aws-node has attached no other interface: ENIConfig {name}{from} has a mistake, or its subnet \
             lacks free addresses"
        ),
        Blame::object("crd.k8s.amazonaws.com/v1alpha1", "ENIConfig", name),
        format!(
            "Correct ENIConfig {name}: spec.subnet must be a subnet of the Node's zone with free addresses, and \
             spec.securityGroups a list. Then restart aws-node on this node."
        ),
    );
    Reason {
        step: Some((Risk::Inspect, "See the ENIConfig", format!("kubectl get eniconfig {name} -o yaml"))),
        ..reason
    }
}

/// The Node may hold more pods than its interfaces have addresses for.
fn too_many_pods(case: &Case, node: &Node, pods: &str, room: &Room) -> Reason {
    let Room { type_, pods: most, trunk, .. } = room;
    let reserved = room.reserved(case);
    let counted = || (reserved > 0).then(|| counted_by_karpenter(case, pods, Some(room), reserved)).flatten();
    if let Some(reason) = set_by_class(case, Some(room)).or_else(counted) {
        return reason;
    }
    let fix = match trunk {
        None => format!(
            "Lower maxPods of such nodes to {most}, or turn on prefix delegation (ENABLE_PREFIX_DELEGATION=true). Then \
             replace the nodes, which evicts their pods."
        ),
        Some(true) => format!(
            "Lower maxPods of such nodes to {most}, or set ENABLE_POD_ENI=false on aws-node if no pod has a security \
             group. Then replace the nodes, which evicts their pods."
        ),
        Some(false) => format!(
            "Update the VPC CNI to 1.20.4 or later, which keeps no interface on such types. Or lower maxPods of such \
             nodes to {most} and replace them, which evicts their pods."
        ),
    };
    let kept = kept_interfaces(case, *trunk);
    Reason::new(
        format!("the node may hold {pods} pods, but {type_} has addresses for {most}{kept}"),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        fix,
    )
}

/// The interfaces that pods do not get, as the end of a sentence.
fn kept_interfaces(case: &Case, trunk: Option<bool>) -> String {
    let custom = custom_networking(case).map(|_| "custom networking leaves the first interface without pods");
    let trunk = trunk.map(|can_have_one| {
        if can_have_one {
            "ENABLE_POD_ENI=true keeps one interface for a trunk"
        } else {
            "ENABLE_POD_ENI=true keeps one interface for a trunk, though this type cannot have one"
        }
    });
    let kept: Vec<&str> = custom.into_iter().chain(trunk).collect();
    if kept.is_empty() { String::new() } else { format!(", since {}", kept.join(", and ")) }
}

fn set_by_class(case: &Case, room: Option<&Room>) -> Option<Reason> {
    let class = case.class()?;
    let own = class.max_pods()?;
    let has = match room {
        Some(Room { type_, pods, .. }) => format!("and {type_} has addresses for {pods} pods"),
        None => "regardless of how many addresses the instance type has".to_owned(),
    };
    let fix = match room.map_or(0, |room| room.reserved(case)) {
        0 => "Remove maxPods, so that Karpenter computes it for each instance type, or turn on prefix delegation \
              (ENABLE_PREFIX_DELEGATION=true). Then replace the nodes, which evicts their pods."
            .to_owned(),
        reserved => format!(
            "Remove maxPods and set RESERVED_ENIS={reserved} on Karpenter (Helm: settings.reservedENIs={reserved}), so \
             that Karpenter computes it for each instance type. Then replace the nodes, which evicts their pods."
        ),
    };
    let why = format!("{} {} sets maxPods to {own}, {has}", class.kind, class.name());
    Some(Reason::new(why, Blame::class(class).field("spec.kubelet.maxPods"), fix))
}

/// Karpenter computes maxPods from all interfaces, also from those that the VPC CNI keeps for something else.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `ENILimitedPods`.
fn counted_by_karpenter(case: &Case, pods: &str, room: Option<&Room>, reserved: u64) -> Option<Reason> {
    let karpenter = case.karpenter().filter(|_| case.claim.is_some())?;
    let own = karpenter.reserved_enis.as_deref().filter(|own| !own.is_empty());
    if own.unwrap_or("0").parse::<u64>().ok()? >= reserved {
        return None;
    }
    let is = own.map_or_else(|| "is not set".to_owned(), |own| format!("is {own}"));
    let has = room.map_or_else(String::new, |room| format!(", but {} has addresses for {}", room.type_, room.pods));
    let keeps = match custom_networking(case) {
        Some(set) => {
            let set = &set.metadata.name;
            let trunk = if reserved > 1 { ", and ENABLE_POD_ENI=true keeps another one for a trunk" } else { "" };
            format!("custom networking leaves the primary network interface without pods (DaemonSet {set}){trunk}")
        }
        None => "ENABLE_POD_ENI=true keeps one network interface for a trunk".to_owned(),
    };
    let them = if reserved > 1 { "them" } else { "it" };
    let (namespace, name) = karpenter.place();
    let class = case.class().map_or_else(String::new, |class| format!(" of {} {}", class.kind, class.name()));
    Some(Reason::new(
        format!("{keeps}. Karpenter still counts {them} (RESERVED_ENIS {is}), so the node may hold {pods} pods{has}"),
        Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec.containers[0].env"),
        format!(
            "Set RESERVED_ENIS={reserved} on Karpenter (Helm: settings.reservedENIs={reserved}), or lower \
             spec.kubelet.maxPods{class}. Then replace the nodes, which evicts their pods. Until then cordon this node \
             and delete the pods that wait, so that they start elsewhere."
        ),
    ))
}

/// The type has addresses for as many pods as the Node may hold.
fn full_subnet(case: &Case, node: &Node, pods: &str, room: &Room) -> Reason {
    Reason::new(
        format!(
            "{} has addresses for {} pods and the node may hold {pods}, so the subnet lacks free addresses, or \
             interfaces that the CNI does not own use up its limit",
            room.type_, room.pods
        ),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        LARGER_SUBNETS,
    )
}

fn unknown_room(case: &Case, node: &Node, pods: &str) -> Reason {
    // With prefixes an interface has more addresses than a Node may hold pods.
    let by_setting = || {
        let custom = u64::from(custom_networking(case).is_some());
        set_by_class(case, None)
            .or_else(|| (custom > 0).then(|| counted_by_karpenter(case, pods, None, custom)).flatten())
    };
    let has_prefixes = has_prefixes(case);
    if let Some(reason) = (!has_prefixes).then(by_setting).flatten() {
        return reason;
    }
    let (subnet, fix) = if has_prefixes {
        ("the subnet has no free block of 16 addresses (/28)", FREE_BLOCKS)
    } else {
        (
            "the subnet lacks free addresses or is too fragmented for prefixes",
            "Give the pods larger subnets (a secondary CIDR with custom networking). Or set aws-node to keep fewer \
             addresses warm (WARM_IP_TARGET, MINIMUM_IP_TARGET), or maxPods to fit the instance type.",
        )
    };
    Reason::new(
        format!("{subnet}, or the node may hold more pods ({pods}) than its interfaces have addresses for"),
        of_aws_node(case, node, "spec.template.spec.containers[0].env"),
        fix,
    )
}

fn of_aws_node(case: &Case, node: &Node, field: &str) -> Blame {
    match case.cluster.daemon_sets().find(|d| d.metadata.name == *vpc_cni::AWS_NODE) {
        Some(set) => Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
            .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
            .field(field),
        None => Blame::object("v1", "Node", node.name()).field("status.allocatable"),
    }
}
