//! A resource that the node was launched for never appeared on the Node.

use crate::cluster_state::memo::Memo;
use crate::cluster_state::old_machines::devices;
use crate::explain::agent_chain::{of_pod, without_pod};
use crate::explain::commands;
use crate::explain::driver_unit;
use crate::explain::explanation::{Explanation, Proof};
use crate::explain::lost_plugin;
use crate::explain::overlay_promise::promised;
use crate::explain::pull;
use crate::facts::node_tallies;
use crate::facts::placement;
use crate::facts::requested_resources::{is_zero, missing};
use crate::objects::{Container, DaemonSet, Node, NodeClaim, Pod, Requirement, Taint};
use crate::rules::prelude::*;
use crate::upstream::vpc_cni;
use readers::source_text::Span;
use readers::userdata::Family;
use std::collections::BTreeMap;
use std::sync::Arc;

rule! {
    cause: ExtendedResourceMissing,
    summary: "A requested resource (a GPU, an EFA device, a pod ENI) never appeared in the Node's allocatable",
    stages: [Initialize],
    reads: [Nodes, NodeClaims, NodeClasses, NodeOverlays, Events, Pods, DaemonSets, Deployments, Logs],
    versions: "all",
}

/// The component that advertises a resource.
struct Advertiser {
    resource: &'static str,
    who: &'static str,
    /// Parts of DaemonSet names, as charts and manifests call them.
    daemon_sets: &'static [&'static str],
    /// The end of its image's repository, which does not depend on the DaemonSet's name; empty if it has no image of
    /// its own.
    image: &'static str,
    /// DaemonSets that load the driver first: the device plugin waits for them.
    drivers: &'static [&'static str],
    fix: &'static str,
}

const ADVERTISERS: &[Advertiser] = &[
    Advertiser {
        resource: "nvidia.com/gpu",
        who: "the NVIDIA device plugin",
        daemon_sets: &["nvidia-device-plugin", "nvidia-gpu-device-plugin"],
        image: "nvidia/k8s-device-plugin",
        // gpu-operator assets/state-driver, assets/state-container-toolkit
        drivers: &["nvidia-driver-daemonset", "nvidia-container-toolkit-daemonset"],
        fix: "Install the NVIDIA device plugin with its chart or the GPU operator, and let it tolerate the NodePool's \
              taints. Use an image with the NVIDIA driver.",
    },
    Advertiser {
        resource: "aws.amazon.com/neuron",
        who: "the Neuron device plugin",
        daemon_sets: &["neuron-device-plugin"],
        image: "neuron/neuron-device-plugin",
        drivers: &[],
        fix: "Install the Neuron device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: "aws.amazon.com/neuroncore",
        who: "the Neuron device plugin",
        daemon_sets: &["neuron-device-plugin"],
        image: "neuron/neuron-device-plugin",
        drivers: &[],
        fix: "Install the Neuron device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: "aws.amazon.com/neurondevice",
        who: "the Neuron device plugin",
        daemon_sets: &["neuron-device-plugin"],
        image: "neuron/neuron-device-plugin",
        drivers: &[],
        fix: "Install the Neuron device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: "amd.com/gpu",
        who: "the AMD GPU device plugin",
        daemon_sets: &["amdgpu-device-plugin"],
        image: "rocm/k8s-device-plugin",
        drivers: &[],
        fix: "Install the AMD GPU device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: "habana.ai/gaudi",
        who: "the Habana device plugin",
        daemon_sets: &["habanalabs-device-plugin"],
        image: "",
        drivers: &[],
        fix: "Install the Habana device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: "vpc.amazonaws.com/efa",
        who: "the EFA device plugin",
        daemon_sets: &["efa-k8s-device-plugin", "efa-device-plugin"],
        image: "aws-efa-k8s-device-plugin",
        drivers: &[],
        fix: "Install the EFA device plugin and let it tolerate the NodePool's taints.",
    },
    Advertiser {
        resource: vpc_cni::POD_ENI,
        who: "the VPC resource controller",
        daemon_sets: &[],
        image: "",
        drivers: &[],
        fix: "Set ENABLE_POD_ENI=true on the VPC CNI, use instance types with trunk ENIs, and attach \
              AmazonEKSVPCResourceController to the cluster role.",
    },
    // amazon-vpc-resource-controller-k8s: its webhook adds this request to Windows pods.
    Advertiser {
        resource: "vpc.amazonaws.com/PrivateIPv4Address",
        who: "the VPC resource controller",
        daemon_sets: &[],
        image: "",
        drivers: &[],
        fix: "Set enable-windows-ipam: \"true\" in the ConfigMap kube-system/amazon-vpc-cni, and attach \
              AmazonEKSVPCResourceController to the cluster role.",
    },
    Advertiser {
        resource: "aws.ec2.nitro/nitro_enclaves",
        who: "the Nitro Enclaves device plugin",
        daemon_sets: &["nitro-enclaves"],
        image: "aws-nitro-enclaves-k8s-device-plugin",
        drivers: &[],
        fix: "Install the Nitro Enclaves device plugin, and launch the instances with enclaves enabled.",
    },
    Advertiser {
        resource: "hugepages-2Mi",
        who: "the kernel's boot configuration",
        daemon_sets: &[],
        image: "",
        drivers: &[],
        fix: "Reserve the huge pages in the image or in user data before the kubelet starts.",
    },
    Advertiser {
        resource: "hugepages-1Gi",
        who: "the kernel's boot configuration",
        daemon_sets: &[],
        image: "",
        drivers: &[],
        fix: "Reserve the huge pages in the image or in user data before the kubelet starts.",
    },
];

/// The reason why the agent that would advertise the resource does not work.
fn by_agent(who: &str, agent: Explanation) -> Explanation {
    let why = format!("{who} does not work there: {}", agent.why.trim_end_matches('.'));
    Explanation { why, ..agent }
}

fn check(case: &Case) -> Option<Opinion> {
    let (node, claim) = (case.node?, case.claim?);
    let missing = missing(claim, node);
    let Some(&first) = missing.iter().find(|name| ADVERTISERS.iter().any(|s| s.resource == **name)).or(missing.first())
    else {
        let because = format!("Node {} offers every resource that NodeClaim {} requested", node.name(), claim.name());
        return Some(Opinion::ruled_out(node, because));
    };
    // cpu and memory are missing only if the kubelet has not reported at all.
    if !node.is_ready() || missing.contains(&"cpu") || missing.contains(&"memory") {
        return None;
    }
    let list = missing.join(", ");
    let advertiser = ADVERTISERS.iter().find(|s| s.resource == first);
    let explanation = explain(case, node, first, advertiser);
    let asked = match (claim.is_node(), missing.len()) {
        (false, 1) => "was requested",
        (false, _) => "were requested",
        (true, 1) => "belongs to the instance type",
        (true, _) => "belong to the instance type",
    };
    let name = node.name();
    let unused = if claim.is_node() { ", so Karpenter never calls the Node initialized" } else { "" };
    let summary = format!(
        "{list} {asked}, but Node {name} has offered none since {}{unused}: {}.",
        case.since(),
        explanation.why
    );
    let object = format!("Node/{}", node.name());
    let finding = Finding::new(
        explanation.confidence(case),
        summary,
        Evidence::new(
            &object,
            format!("status.allocatable['{first}']"),
            node.status.allocatable.get(first).unwrap_or("absent"),
            "pods that request the resource cannot be scheduled here",
        ),
    )
    .with(awaited(case, claim, node, first))
    .fix(advertiser.map_or(
        "Install the component that advertises the resource on the Node, or stop requesting the resource.",
        |s| s.fix,
    ))
    .inspect(
        "See what the Node offers",
        format!("kubectl get node {} -o jsonpath='{{.status.allocatable}}'", node.name()),
    );
    explanation.explain(finding, Link::new(object, format!("it offers no {first}"))).into()
}

fn awaited(case: &Case, claim: &NodeClaim, node: &Node, resource: &str) -> Evidence {
    let by_label = devices(node).into_iter().find(|(name, ..)| claim.is_node() && *name == resource);
    let field = by_label.map_or_else(
        || format!("spec.resources.requests['{resource}']"),
        |(.., label)| format!("metadata.labels['{label}']"),
    );
    let count = claim.spec.resources.requests.get(resource).unwrap_or_default();
    Evidence::new(case.subject(), field, count, "Karpenter waits for this resource, without a timeout")
}

/// The VPC CNI requests a trunk interface only if it is configured to.
/// Source: amazon-vpc-cni-k8s v1.20.4 README.md `ENABLE_POD_ENI` (default false).
fn pod_eni_off(case: &Case, resource: &str) -> Option<Explanation> {
    let set = case
        .cluster
        .daemon_sets()
        .find(|d| d.metadata.name == vpc_cni::AWS_NODE)
        .filter(|_| resource == vpc_cni::POD_ENI)?;
    let off = !set.env("ENABLE_POD_ENI").is_some_and(|v| v.eq_ignore_ascii_case("true"));
    let blame = Blame::object("apps/v1", "DaemonSet", &set.metadata.name)
        .namespace(set.metadata.namespace.as_deref().unwrap_or_default())
        .field("spec.template.spec.containers[0].env");
    off.then(|| {
        let why = "security groups for pods are off: DaemonSet aws-node does not set ENABLE_POD_ENI=true";
        let namespace = set.metadata.namespace.as_deref().unwrap_or("kube-system");
        let command = format!("kubectl set env -n {namespace} daemonset/{} ENABLE_POD_ENI=true", set.metadata.name);
        Explanation::unlinked(Proof::Settled, why, blame).change("Turn on security groups for pods", command)
    })
}

/// The VPC resource controller reports that it cannot serve the instance type. It has its own list, in which new types
/// come late, and which may differ from Karpenter's.
/// Sources: amazon-vpc-resource-controller-k8s v1.7.9 pkg/node/node.go `InitResources`, pkg/provider/branch/provider.go
/// `IsInstanceSupported`, pkg/provider/ip/provider.go `InitResource`, pkg/utils/events.go
/// `UnsupportedInstanceTypeReason`.
fn type_unsupported(case: &Case, node: &Node, resource: &str, advertiser: &Advertiser) -> Option<Explanation> {
    if !resource.starts_with("vpc.amazonaws.com/") || !advertiser.daemon_sets.is_empty() {
        return None;
    }
    let event = case.events().filter(|e| e.involved_object.kind == "Node" && e.reason == "Unsupported").find(|e| {
        e.message.starts_with("The instance type ")
            && ["vpc resource controller", "trunk interface", "for Windows"].iter().any(|of| e.message.contains(of))
    })?;
    let type_ = node.metadata.label("node.kubernetes.io/instance-type").filter(|t| event.message.contains(t))?;
    let pool = case.claim.and_then(NodeClaim::node_pool)?;
    let found = Explanation::unlinked(
        Proof::Settled,
        format!("the VPC resource controller does not support the instance type {type_}, which NodePool {pool} allows"),
        Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"),
    )
    .fix(format!(
        "Exclude {type_} and its family in the requirements of NodePool {pool}, until the controller of the EKS \
         control plane supports it."
    ))
    .change("Exclude the type, for instance with instance-family NotIn", format!("kubectl edit nodepool {pool}"));
    Some(found.with(Evidence::new(
        format!("Event Node/{}", node.name()),
        "message",
        event.said(),
        "the controller gives such a node no trunk interface, and nothing that depends on one",
    )))
}

/// A Node that offers the resource.
static OFFERING: Memo<Option<String>> = Memo::new("a Node that offers the resource");

/// No DaemonSet has the name of the device plugin: it is absent, has another name, or is part of the image.
fn without_daemon_set(case: &Case, node: &Node, resource: &str, advertiser: &Advertiser) -> Explanation {
    if let Some(found) = lost_plugin::of(case, node, resource, advertiser.who, None) {
        return found;
    }
    let blame = Blame::object("v1", "Node", node.name()).field("status.allocatable");
    let offers = |n: &&Node| n.status.allocatable.get(resource).is_some_and(|q| !is_zero(q));
    let offering =
        case.cluster.once(&OFFERING, resource, || case.cluster.nodes().find(offers).map(|n| n.name().to_owned()));
    if let Some(other) = offering.as_ref() {
        let own = node.status.node_info.os_image.as_str();
        let theirs = case.cluster.node(other).map_or("", |other| other.status.node_info.os_image.as_str());
        let (why, fix) = if own == theirs || own.is_empty() || theirs.is_empty() {
            let why = format!("Node {other} offers it, so something advertises it there, but not here");
            (why, format!("See what advertises it on Node {other}, and make that run here too."))
        } else {
            let why = format!("Node {other} with the image {theirs} offers it, but not this one with the image {own}");
            let fix = format!(
                "See what advertises it on Node {other}, and make that run here too. If it is part of the image, as \
                 in Bottlerocket's NVIDIA variants, pin the image of that Node."
            );
            (why, fix)
        };
        return Explanation::unlinked(Proof::None, why, blame).fix(fix).inspect(
            "See what runs on the Node that offers it",
            format!("kubectl get pods -A -o wide --field-selector spec.nodeName={other}"),
        );
    }
    // Bottlerocket's NVIDIA variants start the device plugin as a service of the image.
    // Source: bottlerocket-core-kit packages/nvidia-k8s-device-plugin.
    if node.status.node_info.os_image.starts_with("Bottlerocket") {
        let why = format!("on Bottlerocket {} is part of the image's accelerated variant", advertiser.who);
        let explained = Explanation::unlinked(Proof::Open, why, blame).fix(
            "Select Bottlerocket's accelerated variant with an alias, because Karpenter then chooses the variant \
             that fits the instance.",
        );
        return match case.class() {
            Some(class) => explained.change("Select by alias", commands::edit(class)),
            None => explained,
        };
    }
    if case.cluster.missing(Input::DaemonSets).is_some() {
        return Explanation::unlinked(
            Proof::None,
            format!("{} advertises it, and nodewhy could not read whether it is installed", advertiser.who),
            blame,
        );
    }
    // Source: the EKS User Guide, "Deploy an accelerated workload": Auto Mode brings the drivers and the device
    // plugins.
    if node.metadata.label("eks.amazonaws.com/compute-type") == Some("auto") {
        let why = format!("in EKS Auto Mode {} is part of the node's image", advertiser.who);
        return Explanation::unlinked(Proof::None, why, blame);
    }
    let blame = advertiser.daemon_sets.first().map_or(blame, |set| Blame::object("apps/v1", "DaemonSet", set));
    Explanation::unlinked(Proof::Open, format!("no DaemonSet of {} is in the cluster", advertiser.who), blame)
}

/// Nodes of one instance family that run one image.
#[derive(Default)]
struct Alike {
    /// A node that offers the resource.
    offers: Option<String>,
    /// The number of nodes that are Ready and were asked for the resource, but offer none.
    lack: u32,
}

/// Instance family and image.
type Kind = (String, String);

/// The kinds of nodes that offer the resource, and those that do not.
static KINDS: Memo<BTreeMap<Kind, Alike>> = Memo::new("the kinds of nodes that offer the resource");

fn kind(node: &Node, claim: &NodeClaim) -> Option<Kind> {
    const FAMILY: &str = "karpenter.k8s.aws/instance-family";
    let label = claim.metadata.label(FAMILY).or_else(|| node.metadata.label(FAMILY));
    let family = label.or_else(|| node_tallies::family(node))?;
    Some((family.to_owned(), claim.status.image_id.to_string()))
}

fn kinds(case: &Case, resource: &str) -> Arc<BTreeMap<Kind, Alike>> {
    case.cluster.once(&KINDS, resource, || {
        let mut kinds = BTreeMap::<Kind, Alike>::new();
        for node in case.cluster.nodes().filter(|node| node.is_ready()) {
            let Some(claim) = case.cluster.claim_of_node(node) else { continue };
            let Some(kind) = kind(node, claim) else { continue };
            if node.status.allocatable.get(resource).is_some_and(|q| !is_zero(q)) {
                kinds.entry(kind).or_default().offers.get_or_insert_with(|| node.name().to_owned());
            } else if claim.spec.resources.requests.get(resource).is_some() {
                kinds.entry(kind).or_default().lack += 1;
            }
        }
        kinds
    })
}

/// The plugin is Ready but finds nothing. Other nodes that offer the resource show whether the image, this node or the
/// plugin itself is at fault.
fn finds_no_device(case: &Case, node: &Node, resource: &str, advertiser: &Advertiser, pod: &Pod) -> Explanation {
    let (who, name) = (advertiser.who, &pod.metadata.name);
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let head = format!("{who} runs there but finds no device");
    let likely = |why: String, blame: Blame| {
        let see = format!("kubectl logs -n {namespace} {name} --all-containers --tail=50");
        Explanation::unlinked(Proof::Open, why, blame).inspect("See what its pod logs", see)
    };
    let of_set = |pod: &Pod| {
        let blame = Blame::object("apps/v1", "DaemonSet", pod.daemon_set().unwrap_or_default());
        blame.namespace(pod.metadata.namespace.as_deref().unwrap_or_default())
    };
    let of_node = Blame::object("v1", "Node", node.name()).field("status.allocatable");
    let lost = || lost_plugin::of(case, node, resource, who, Some(pod));
    if let Some(found) = failed_unit(case, node, resource, &head).or_else(lost) {
        return found;
    }
    let kinds = kinds(case, resource);
    let own = case.claim.and_then(|claim| kind(node, claim));
    let alike = own.as_ref().and_then(|own| kinds.get(own));
    let restart = format!("Restart pod {name}, so that it registers again");
    if let Some((works, lack)) = alike.and_then(|alike| Some((alike.offers.as_ref()?, alike.lack))) {
        if let Some(found) = looked_too_early(case, pod, works) {
            return found;
        }
        let while_ = format!("{head}, while Node {works} of the same instance family and image offers it");
        // The chart's sidecar and GPU operator's config-manager restart the plugin once they have read the Node's
        // label. Source: NVIDIA/k8s-device-plugin v0.17.1 deployments/helm/nvidia-device-plugin/templates/
        // daemonset-device-plugin.yml; what a race there does: NVIDIA/k8s-device-plugin#1645.
        if pod.spec.containers.iter().any(|c| c.name == "nvidia-device-plugin-sidecar" || c.name == "config-manager") {
            return likely(
                format!("{while_}. Its config manager may have restarted it before it was registered"),
                of_set(pod),
            )
            .fix(format!(
                "{restart}. To avoid this race, use a version of the plugin without it, or one configuration without \
                 the config manager."
            ));
        }
        if lack > 1 {
            return likely(while_, of_set(pod))
                .fix(format!("{restart}. If that helps, what the plugin needs at its start comes too late."));
        }
        return likely(while_, of_node)
            .fix(format!("{restart}. If that does not help, the node's device is broken: delete its NodeClaim."));
    }
    let driver = |p: &&Pod| p.daemon_set().is_some_and(|d| advertiser.drivers.iter().any(|part| d.contains(part)));
    if let Some(driver) = case.pods().find(driver) {
        let set = driver.daemon_set().unwrap_or_default();
        return likely(format!("{head}, and DaemonSet {set} installs its driver"), of_set(driver))
            .fix(format!("Use a driver version in DaemonSet {set} that supports the device of this instance type."));
    }
    let Some(class) = case.class() else {
        let why = format!("{head}. The image may lack the driver");
        return likely(why, of_node).fix(
            "Read its log for the device that it looks for. Then select an image and an instance type that have it.",
        );
    };
    let family = own.as_ref().map_or("the instance type", |(family, _)| family.as_str());
    let image = own.as_ref().map_or("", |(_, image)| image.as_str());
    let offers = |which: &dyn Fn(&Kind) -> bool| {
        kinds.iter().filter(|(kind, _)| which(kind)).find_map(|(kind, alike)| Some((kind, alike.offers.as_ref()?)))
    };
    let blame = Blame::class(class).field("spec.amiSelectorTerms");
    let fix = format!(
        "Select an image whose driver supports the devices of {family}, or exclude the family in the NodePool until \
         there is one."
    );
    if let Some(((other, _), machine)) = offers(&|kind| kind.1 == image && !image.is_empty()) {
        let why = format!(
            "{head}. No node of instance family {family} with the image {image} has it, while one of {other} with the \
             same image has. Most likely the driver of the image does not support this device"
        );
        return likely(why, blame).fix(fix).with(Evidence::new(
            format!("Node/{machine}"),
            format!("status.allocatable['{resource}']"),
            image,
            format!("a node of instance family {other} with this image offers {resource}"),
        ));
    }
    let why = match offers(&|kind| kind.0 == family) {
        Some(((_, other), _)) => format!(
            "{head}, while a node of its family {family} with the image {other} has it. The driver of {image} perhaps \
             does not support this device"
        ),
        None => format!("{head}. The image may lack the driver, or its driver may not support {family}"),
    };
    likely(why, blame).fix(fix)
}

/// The node's log says that a unit which sets up the driver failed. Nothing starts it again.
fn failed_unit(case: &Case, node: &Node, resource: &str, head: &str) -> Option<Explanation> {
    let unit = driver_unit::failed(case, resource)?;
    let of_node = || Blame::object("v1", "Node", node.name()).field("status.allocatable");
    let blame = case.class_field("spec.amiSelectorTerms").unwrap_or_else(of_node);
    let why = format!("{head}. {}", unit.says);
    Some(Explanation::unlinked(Proof::Open, why, blame).fix(driver_unit::FIX).with(unit.evidence))
}

fn explain(case: &Case, node: &Node, resource: &str, advertiser: Option<&Advertiser>) -> Explanation {
    let node_blame = || Blame::object("v1", "Node", node.name()).field("status.allocatable");
    if let Some((renamed, _)) = node
        .status
        .allocatable
        .iter()
        .find(|(k, _)| k.strip_prefix(resource).is_some_and(|rest| rest.starts_with(".shared")))
    {
        let why = format!("the device plugin offers it as {renamed} (time-slicing or MPS with renameByDefault)");
        let setting = renaming_setting(case);
        let proof = if setting.is_some() { Proof::Settled } else { Proof::Open };
        return Explanation::unlinked(proof, why, setting.unwrap_or_else(node_blame)).fix(format!(
            "Change the pods to request {renamed}. Or turn off renameByDefault (Bottlerocket: rename-by-default) in \
             the configuration of the sharing."
        ));
    }
    // mig.strategy=mixed. Source: NVIDIA/k8s-device-plugin v0.17 internal/rm/device_map.go.
    if let Some(slice) = node
        .status
        .allocatable
        .iter()
        .find(|(k, v)| resource == "nvidia.com/gpu" && k.starts_with("nvidia.com/mig-") && !is_zero(v))
    {
        let why = format!("the device plugin offers slices instead ({}; mig.strategy=mixed)", slice.0);
        return Explanation::unlinked(Proof::Open, why, node_blame())
            .fix(format!("Change the pods to request {}, or set mig.strategy=single on the device plugin.", slice.0));
    }
    let Some(advertiser) = advertiser else {
        let promise = promised(case, resource);
        let is_weak = promise.as_ref().is_none_or(|promise| promise.proof == Proof::None);
        let agent = || {
            lost_plugin::of(case, node, resource, "its device plugin", None)
                .or_else(|| named_after(case, node, resource))
        };
        let agent = if is_weak { agent() } else { None };
        if let Some(found) = agent.or(promise) {
            return found;
        }
        let why = "nothing on the Node advertises it, and nodewhy does not know what should (a NodeOverlay may promise \
                   what no node has)";
        return Explanation::unlinked(Proof::None, why, node_blame());
    };
    if let Some(found) = pod_eni_off(case, resource).or_else(|| type_unsupported(case, node, resource, advertiser)) {
        return found;
    }
    if advertiser.daemon_sets.is_empty() {
        if let Some(found) = named_after(case, node, resource) {
            return found;
        }
        return Explanation::unlinked(Proof::Open, format!("{} has not provided it", advertiser.who), node_blame());
    }
    // The chart of the device plugin names its feature discovery after itself.
    let is_advertiser = |name: &str, containers: &[Container]| {
        let by_name = advertiser.daemon_sets.iter().any(|part| name.contains(part));
        let by_image = !advertiser.image.is_empty() && containers.iter().any(|c| c.image.contains(advertiser.image));
        (by_name || by_image) && !name.contains("feature-discovery")
    };
    if let Some(found) = failing_driver(case, node, advertiser) {
        return found;
    }
    if let Some(pod) = case.pods().find(|p| p.daemon_set().is_some_and(|d| is_advertiser(d, &p.spec.containers))) {
        let starts = pod.trouble().is_none_or(|(_, why)| pull::explain(&why).is_none());
        if let Some(found) = image_without_driver(case, advertiser).filter(|_| starts) {
            return found;
        }
        let who = advertiser.who;
        if pod.is_ready() {
            return finds_no_device(case, node, resource, advertiser, pod);
        }
        return by_agent(who, of_pod(case, node, pod));
    }
    let is_its = |d: &&DaemonSet| is_advertiser(&d.metadata.name, &d.spec.template.spec.containers);
    let sets: Vec<&DaemonSet> = case.cluster.daemon_sets().filter(is_its).collect();
    let Some(set) = sets.first() else { return without_daemon_set(case, node, resource, advertiser) };
    let name = &set.metadata.name;
    let blame =
        Blame::object("apps/v1", "DaemonSet", name).namespace(set.metadata.namespace.as_deref().unwrap_or_default());
    if let Some(refusal) = placement::refusal(set, node) {
        let unmet = set.spec.template.spec.affinity.unmet(&node.metadata);
        if refusal.field == placement::AFFINITY
            && let Some(found) = starved_labeller(case, node, name, &unmet)
        {
            return found;
        }
        // The GPU operator labels a Node some minutes after it joined, when the driver is loaded.
        let proof = if refusal.may_change { Proof::Lasting } else { Proof::Settled };
        let untolerated = node.spec.taints.iter().find(|t| t.keeps_pods_off() && !set.tolerates(t));
        let selection = refusal.selection_fix(name);
        let explained = Explanation::unlinked(proof, refusal.why, blame.field(refusal.field));
        return match untolerated {
            Some(taint) => tolerating(explained, set, taint),
            None => explained.fix(selection).inspect("See what it selects", describe_set(set)),
        };
    }
    by_agent(advertiser.who, without_pod(case, node, name))
}

/// What provides the resource is nothing that AWS or a vendor publishes, and a DaemonSet whose name or image has the
/// resource's own name does not run on the Node. Its name is no proof.
fn named_after(case: &Case, node: &Node, resource: &str) -> Option<Explanation> {
    /// A shorter word is a part of many names.
    const LEAST: usize = 5;
    // Behind a hyphen is a size: hugepages-2Mi.
    let own = resource.rsplit('/').next().and_then(|name| name.split('-').next())?.to_ascii_lowercase();
    let is_named = |text: &str| own.len() >= LEAST && text.to_ascii_lowercase().contains(&own);
    let (set, pod) = case.pods().filter(|pod| !pod.is_ready()).find_map(|pod| {
        let set = pod.daemon_set()?;
        let by_image = || pod.spec.containers.iter().any(|container| is_named(&container.image));
        (is_named(set) || by_image()).then_some((set, pod))
    })?;
    let explained = by_agent(&format!("DaemonSet {set}, which has the name of the resource,"), of_pod(case, node, pod));
    Some(Explanation { proof: explained.proof.min(Proof::Open), ..explained })
}

/// The plugin found no device when it started, and is configured to wait then instead of exiting: nothing restarts it
/// when the driver is loaded. The Node `works`, of the same kind, shows that the image has that driver.
/// Source: NVIDIA/k8s-device-plugin v0.17 README.md `FAIL_ON_INIT_ERROR`, cmd/nvidia-device-plugin/main.go.
fn looked_too_early(case: &Case, pod: &Pod, works: &str) -> Option<Explanation> {
    const END: &str = "FAIL_ON_INIT_ERROR";
    let set = case.cluster.daemon_sets().find(|set| Some(set.metadata.name.as_str()) == pod.daemon_set())?;
    set.env(END).filter(|value| value.eq_ignore_ascii_case("false"))?;
    let name = &set.metadata.name;
    let namespace = set.metadata.namespace.as_deref().unwrap_or("kube-system");
    let why = format!(
        "its device plugin found no device when it started and waits ({END}=false), while Node {works} of the same \
         instance family and image offers it. The driver was loaded later"
    );
    let blame =
        Blame::object("apps/v1", "DaemonSet", name).namespace(namespace).field("spec.template.spec.containers[0].env");
    let found = Explanation::unlinked(Proof::Open, why, blame)
        .fix(format!(
            "Set {END}=true on DaemonSet {name}: the plugin then exits, and the kubelet restarts it until the driver \
             is loaded."
        ))
        .change(
            "Restart the plugin, now that the driver is loaded",
            format!("kubectl delete pod -n {namespace} {}", pod.metadata.name),
        );
    Some(found.with(Evidence::new(
        format!("DaemonSet/{namespace}/{name}"),
        "spec.template.spec.containers[0].env",
        format!("{END}=false"),
        "with this setting, it waits for ever if it found no device",
    )))
}

fn tolerating(explained: Explanation, set: &DaemonSet, taint: &Taint) -> Explanation {
    explained
        .fix(format!(
            "Let DaemonSet {} tolerate {taint}. Also set the toleration in the chart's values, or the next helm \
             upgrade removes it.",
            set.metadata.name
        ))
        .change("Add the toleration", commands::tolerate(set, taint))
}

fn describe_set(set: &DaemonSet) -> String {
    format!(
        "kubectl describe daemonset -n {} {}",
        set.metadata.namespace.as_deref().unwrap_or("default"),
        set.metadata.name
    )
}

/// The device plugin waits for labels of Node Feature Discovery, but its worker may not run here.
fn starved_labeller(case: &Case, node: &Node, plugin: &str, unmet: &[&Requirement]) -> Option<Explanation> {
    // node-feature-discovery pkg/apis/nfd/v1alpha1 `FeatureLabelNs`
    let label = unmet.iter().find(|r| r.key.starts_with("feature.node.kubernetes.io/"))?;
    let is_worker =
        |d: &&DaemonSet| d.metadata.name.ends_with("node-feature-discovery-worker") || d.metadata.name == "nfd-worker";
    let workers: Vec<&DaemonSet> = case.cluster.daemon_sets().filter(is_worker).collect();
    let refused = |d: &DaemonSet| node.spec.taints.iter().find(|t| t.keeps_pods_off() && !d.tolerates(t)).cloned();
    let (worker, taint) = workers.first().and_then(|d| Some((*d, refused(d)?)))?;
    if workers.iter().any(|d| refused(d).is_none()) {
        return None;
    }
    let name = &worker.metadata.name;
    let blame =
        Blame::object("apps/v1", "DaemonSet", name).namespace(worker.metadata.namespace.as_deref().unwrap_or_default());
    let why = format!(
        "DaemonSet {name} does not tolerate the Node's taint {taint}, so it does not set the label {}. DaemonSet \
         {plugin} runs only on Nodes with {}",
        label.key,
        label.shown()
    );
    let explained = Explanation::unlinked(Proof::Settled, why, blame.field("spec.template.spec.tolerations"));
    Some(tolerating(explained, worker, &taint))
}

/// The image is one of AWS's own without the driver, and nothing in the cluster installs one.
/// Source: awslabs/amazon-eks-ami v20260114 doc/usage (image names); AL2's GPU image is called amazon-eks-gpu-node.
fn image_without_driver(case: &Case, advertiser: &Advertiser) -> Option<Explanation> {
    const STANDARD: [&str; 3] = ["amazon-eks-node-al2023-", "amazon-eks-node-1.", "amazon-eks-arm64-node-"];
    let needed = match advertiser.resource {
        "nvidia.com/gpu" => "nvidia",
        "aws.amazon.com/neuron" | "aws.amazon.com/neuroncore" | "aws.amazon.com/neurondevice" => "neuron",
        _ => return None,
    };
    let installs = |d: &DaemonSet| advertiser.drivers.iter().any(|driver| d.metadata.name.contains(driver));
    let class = case.class()?;
    let image = case.claim.map(|c| c.status.image_id.as_str()).filter(|id| !id.is_empty())?;
    let name = &class.status.amis.iter().find(|ami| ami.id == image)?.name;
    let lacks = STANDARD.iter().any(|family| name.starts_with(family)) && !name.contains(needed);
    if !lacks || case.cluster.missing(Input::DaemonSets).is_some() || case.cluster.daemon_sets().any(installs) {
        return None;
    }
    let blame = Blame::class(class).field("spec.amiSelectorTerms");
    let why = format!(
        "the image {name} has no {} driver, and nothing in the cluster installs one",
        if needed == "nvidia" { "NVIDIA" } else { "Neuron" }
    );
    let fix =
        "Set an alias in amiSelectorTerms. Karpenter then chooses the accelerated image if the instance needs it.";
    Some(Explanation::unlinked(Proof::Open, why, blame).fix(fix).change("Set the alias", commands::edit(class)))
}

/// The device plugin only waits: the pod that loads the driver fails.
fn failing_driver(case: &Case, node: &Node, advertiser: &Advertiser) -> Option<Explanation> {
    let loads = |pod: &&Pod| pod.daemon_set().is_some_and(|set| advertiser.drivers.iter().any(|d| set.contains(d)));
    let pod = case.pods().find(|pod| pod.trouble().is_some() && loads(pod))?;
    let set = pod.daemon_set()?;
    let agent = of_pod(case, node, pod);
    let why = format!(
        "{} waits for the driver, but DaemonSet {set} fails on the Node: {}",
        advertiser.who,
        agent.why.trim_end_matches('.')
    );
    // Whoever installs the driver is to change it, whatever its pod lacks.
    let blame =
        Blame::object("apps/v1", "DaemonSet", set).namespace(pod.metadata.namespace.as_deref().unwrap_or_default());
    Some(Explanation { why, blame, ..agent })
}

/// The place where Bottlerocket's settings turn on the sharing that renames the resource.
/// Source: bottlerocket-settings-sdk kubelet-device-plugins: device-sharing-strategy, rename-by-default.
fn renaming_setting(case: &Case) -> Option<Blame> {
    let (_, text) = case.user_data().filter(|(u, _)| u.family == Family::Bottlerocket)?;
    let setting = |key: &str| text.lines().map(str::trim).find(|line| line.starts_with(key));
    let line = ["rename-by-default", "device-sharing-strategy"].into_iter().find_map(setting)?;
    let start = text.find(line)?;
    let class = case.class()?;
    let blame = Blame::class(class).field("spec.userData");
    Some(blame.at(text, Span::new(start, start + line.len())))
}
