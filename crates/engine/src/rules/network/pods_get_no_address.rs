//! The Node is Ready, but its network plugin has no addresses left for its pods.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::facts::cni_permissions;
use crate::facts::custom_networking::custom_networking;
use crate::facts::network_plugin::plugin;
use crate::facts::pod_addresses::{is_refusing, refusal};
use crate::objects::input::Input;
use crate::objects::{DaemonSet, Event, Node};
use crate::rules::Rule;
use crate::upstream::karpenter::{Version, image_tag};
use crate::upstream::{instance_types, vpc_cni};

pub static RULE: Rule = Rule {
    cause: "PodsGetNoAddress",
    summary: "The Node is Ready, but its pods stay in ContainerCreating because the network plugin has no addresses \
              for them",
    stages: &[Stage::Ready],
    reads: &[Input::NodeClasses, Input::Events, Input::Pods, Input::DaemonSets, Input::Deployments],
    lint: false,
    versions: "all; RESERVED_ENIS since Karpenter 0.28",
    page: include_str!("../../../pages/PodsGetNoAddress.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let Some(node) = case.node.filter(|n| n.is_ready()) else { return Opinion::Silent };
    if !is_refusing(case, node) {
        return Opinion::Silent;
    }
    let Some(event) = refusal(case, node) else { return Opinion::Silent };
    let zone = node.metadata.label("topology.kubernetes.io/zone").unwrap_or("its zone");
    let pods = node.status.allocatable.get("pods").unwrap_or("an unknown number of");
    // amazon-vpc-cni-k8s v1.20.4 cmd/routed-eni-cni-plugin/cni.go `add`
    let of_vpc_cni = event.message.contains("failed to assign an IP address to container");
    let ranges = plugin(case, node).filter(|_| !of_vpc_cni);
    let room = room(case, node).filter(|_| ranges.is_none());
    let (why, blame, fix) =
        ranges.map_or_else(|| explain(case, node, pods, room.as_ref()), |set| of_range(event, set, pods));
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
    .blaming(blame)
    .fix(fix)
    .step(Risk::LowRisk, "Keep new pods off this node", Some(format!("kubectl cordon {}", node.name())));
    if ranges.is_some() {
        return finding.into();
    }
    let finding = finding.ask_aws(
        format!("Are there free addresses in the subnets of {zone}?"),
        "aws ec2 describe-subnets --query 'Subnets[].[SubnetId,AvailabilityZone,AvailableIpAddressCount]' --output \
         text",
    );
    match case.pods().find(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE)) {
        // Its own rule has the better sentence.
        Some(pod) if cni_permissions::denied(case, pod).is_some() => Opinion::Silent,
        _ => finding.into(),
    }
}

/// The plugin gives each Node a range of its own and does not know how many pods come.
fn of_range(event: &Event, set: &DaemonSet, pods: &str) -> (String, Blame, &'static str) {
    let (name, namespace) = (&set.metadata.name, set.metadata.namespace.as_deref().unwrap_or_default());
    let of_set = || Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
    // Source: cilium v1.17 install/kubernetes/cilium/templates/cilium-configmap.yaml.
    if event.message.contains("postIpamFailure range is full") {
        let blame = Blame::object("v1", "ConfigMap", "cilium-config").namespace(namespace);
        return (
            format!(
                "the range that Cilium gives each Node is full: the node may hold {pods} pods, and the range has fewer \
                 addresses"
            ),
            blame.field("data['cluster-pool-ipv4-mask-size']"),
            "Give new Nodes a larger range (Helm: ipam.operator.clusterPoolIPv4MaskSize), which applies only to Nodes \
             created later. Or lower maxPods in the EC2NodeClass to the size of the range.",
        );
    }
    let why = format!(
        "its range is full or was never assigned: the node may hold {pods} pods, and the range has fewer addresses"
    );
    (
        why,
        of_set(),
        "Give its Nodes larger ranges or more of them, or lower maxPods in the EC2NodeClass to the size of a range.",
    )
}

const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";

/// The number of pods that the Node's type has single addresses for.
struct Room<'c> {
    type_: &'c str,
    pods: u64,
    /// Whether the Node allows no more pods than that.
    suffices: bool,
    /// Whether the VPC CNI keeps one interface for a trunk, and if so, whether the type can have one.
    trunk: Option<bool>,
}

/// `None` for a type newer than the table, if the VPC CNI was not seen, or if it assigns addresses in prefixes of
/// sixteen. Source: amazon-vpc-cni-k8s v1.20.4 README.md.
///
/// With ENABLE_POD_ENI it keeps room for a trunk interface. Up to 1.18 at least it does so even on types that cannot
/// have one.
/// Source: amazon-vpc-cni-k8s v1.9.3, v1.18.0, v1.20.4 pkg/ipamd/ipamd.go `hasRoomForEni`.
fn room<'c>(case: &Case<'c>, node: &'c Node) -> Option<Room<'c>> {
    let set = case.cluster.daemon_sets().find(|d| d.metadata.name == *vpc_cni::AWS_NODE)?;
    let is_on = |name: &str| set.env(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_on("ENABLE_PREFIX_DELEGATION") {
        return None;
    }
    let type_ = node.metadata.label(INSTANCE_TYPE)?;
    let network = instance_types::network(type_)?;
    let trunk = if is_on("ENABLE_POD_ENI") {
        let image = set.spec.template.spec.containers.iter().map(|c| &*c.image).find(|image| image.contains("cni"))?;
        let version = image_tag(image).and_then(Version::parse)?;
        let has_branches = network.branches > 0;
        (has_branches || version < Version(1, 19, 0)).then_some(has_branches)
    } else {
        None
    };
    let pods = network.pods(u64::from(custom_networking(case).is_some()) + u64::from(trunk.is_some()));
    let allowed: u64 = node.status.allocatable.get("pods")?.parse().ok()?;
    Some(Room { type_, pods, suffices: allowed <= pods, trunk })
}

/// The setting that allows more pods than there are addresses, if nodewhy sees one.
fn explain(case: &Case, node: &Node, pods: &str, room: Option<&Room>) -> (String, Blame, &'static str) {
    if let Some(class) = case.class().filter(|class| !class.spec.pod_subnet_selector_terms.is_empty()) {
        let zone = node.metadata.label("topology.kubernetes.io/zone").unwrap_or("its own");
        return (
            format!(
                "{} {} selects separate subnets for pods (podSubnetSelectorTerms), but none of them is in the Node's \
                 zone {zone} with addresses left",
                class.kind,
                class.name()
            ),
            Blame::class(class).field("spec.podSubnetSelectorTerms"),
            "Select a pod subnet in every zone in which subnetSelectorTerms has one, because a network interface must \
             be in the zone of its node. This affects new nodes.",
        );
    }
    if let Some(Room { type_, pods: room, .. }) = room.filter(|room| room.suffices) {
        return of_subnet(
            case,
            node,
            format!(
                "the subnet lacks free addresses or is too fragmented for prefixes, or interfaces that the CNI does \
                 not own use their addresses ({type_} has addresses for {room} pods, and the node may hold {pods})"
            ),
        );
    }
    let custom = custom_networking(case);
    if let Some((class, own)) = case.class().and_then(|c| Some((c, c.max_pods()?))) {
        let has = match room {
            Some(Room { type_, pods: room, .. }) => format!("and {type_} has addresses for {room} pods"),
            None => "regardless of how many addresses the instance type has".to_owned(),
        };
        return (
            format!("{} {} sets maxPods to {own}, {has}", class.kind, class.name()),
            Blame::class(class).field("spec.kubelet.maxPods"),
            "Remove maxPods, so that Karpenter computes it for each instance type, or turn on prefix delegation \
             (ENABLE_PREFIX_DELEGATION=true). Then replace the nodes, which evicts their pods.",
        );
    }
    if let Some((set, karpenter)) = custom.zip(case.karpenter())
        && case.claim.is_some()
        && karpenter.reserved_enis.as_deref().is_none_or(|v| v.is_empty() || v == "0")
    {
        return (
            format!(
                "custom networking leaves the primary network interface without pods (DaemonSet {}), but Karpenter \
                 counts it (RESERVED_ENIS is not set), so the node may hold {pods} pods",
                set.metadata.name
            ),
            Blame::object("apps/v1", "Deployment", "karpenter").field("spec.template.spec.containers[0].env"),
            "Set RESERVED_ENIS=1 on Karpenter (Helm: settings.reservedENIs=1), then replace the nodes, which evicts \
             their pods.",
        );
    }
    let too_many = match room {
        Some(Room { type_, pods: room, trunk, .. }) => {
            let kept = match trunk {
                None => "",
                Some(true) => ", since ENABLE_POD_ENI=true keeps one interface for a trunk",
                Some(false) => {
                    ", since ENABLE_POD_ENI=true keeps one interface for a trunk, though this type cannot have one"
                }
            };
            format!("the node may hold {pods} pods, but {type_} has addresses for {room}{kept}")
        }
        None => format!(
            "the subnet lacks free addresses or is too fragmented for prefixes, or the node may hold more pods \
             ({pods}) than its interfaces have addresses for"
        ),
    };
    of_subnet(case, node, too_many)
}

fn of_subnet(case: &Case, node: &Node, why: String) -> (String, Blame, &'static str) {
    (
        why,
        match case.cluster.daemon_sets().find(|d| d.metadata.name == *vpc_cni::AWS_NODE) {
            Some(set) => Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
                .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
                .field("spec.template.spec.containers[0].env"),
            None => Blame::object("v1", "Node", node.name()).field("status.allocatable"),
        },
        "Give the pods larger subnets (a secondary CIDR with custom networking). Or set aws-node to keep fewer \
         addresses warm (WARM_IP_TARGET, MINIMUM_IP_TARGET), or maxPods to fit the instance type.",
    )
}
