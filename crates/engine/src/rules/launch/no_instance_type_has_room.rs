//! No instance type of a NodePool is large enough for pods, but not because of the pods' size. The reasons are a
//! resource that Karpenter knows for no instance type, a volume that is too small, and DaemonSets that take the node.

mod no_device;

use self::no_device::no_device;
use crate::case::extended::Offer;
use crate::case::unplaced::{Lack, Unplaced, Why, requested};
use crate::explain::commands;
use crate::facts::workload::PodWorkload;
use crate::objects::{DaemonSet, Node, NodePool, quantity};
use crate::rules::prelude::*;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::overhead::{self, MIB};
use crate::upstream::vpc_cni::POD_ENI;

rule! {
    cause: NoInstanceTypeHasRoom,
    summary: "No instance type has what pods and DaemonSets request: a resource that Karpenter does not know, a small \
              volume, DaemonSets that grew",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeOverlays, NodeClaims, Nodes, Events, Pods, DaemonSets, Deployments],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let (told, lack) = case.lacking().next()?;
    let pod = &told.event.involved_object;
    let of_pod = format!("Pod {}/{}", pod.namespace.as_deref().unwrap_or("default"), pod.name);
    let event = Evidence::new(
        format!("Event Pod/{}", pod.name),
        "message",
        told.event.said(),
        "Karpenter finds no instance type with enough resources among those that the NodePool allows",
    );
    match lack.why {
        Why::Unknown { of_daemons } => unknown(case, pool, &told, &lack, of_daemons, &of_pod, event),
        Why::NoDevice => no_device(case, pool, &told, &lack, &of_pod, event),
        Why::Multiplied { offer } => multiplied(pool, &lack, &offer, &of_pod, event),
        Why::SmallVolume { gib } => small_volume(case, pool, &lack, gib, &of_pod, event),
        Why::Reckoned { machine } => reckoned(case, pool, &lack, machine, &of_pod, event),
        Why::Crowded { of_daemons, machine } => crowded(case, pool, &lack, of_daemons, machine.name(), &of_pod, event),
    }
    .into()
}

/// The DaemonSet that requests the most of a resource.
fn largest<'w>(case: &Case<'w>, resource: &str) -> Option<(&'w DaemonSet, f64)> {
    let asks = |set: &'w DaemonSet| (set, requested(&set.spec.template.spec.containers, resource));
    let sets = case.cluster.daemon_sets().map(asks).filter(|(_, asked)| *asked > 0.0);
    sets.max_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal))
}

fn of_daemon_set(set: &DaemonSet) -> (Blame, String) {
    let (name, namespace) = (&set.metadata.name, set.metadata.namespace.as_deref().unwrap_or("default"));
    let blame = Blame::object("apps/v1", "DaemonSet", name).namespace(namespace);
    (
        blame.field("spec.template.spec.containers[*].resources.requests"),
        format!("kubectl edit daemonset -n {namespace} {name}"),
    )
}

fn unknown(
    case: &Case,
    pool: &NodePool,
    told: &Unplaced,
    lack: &Lack,
    of_daemons: Option<&str>,
    of_pod: &str,
    event: Evidence,
) -> Finding {
    let (name, resource, total) = (pool.name(), lack.resource, lack.total);
    let of_pool = Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements");
    let head = format!("NodePool {name} launches nothing for {of_pod}");
    if let Some(karpenter) = case.karpenter().filter(|k| resource == POD_ENI && k.leaves_out_pod_eni()) {
        return without_pod_eni(karpenter, &head, event);
    }
    let (summary, blame, fix, step) = if let Some(part) = of_daemons {
        let set = largest(case, resource);
        let who = set.map_or_else(|| "a DaemonSet".to_owned(), |(set, _)| format!("DaemonSet {}", set.metadata.name));
        let (blame, command) =
            set.map_or((of_pool, format!("kubectl edit nodepool {name}")), |(set, _)| of_daemon_set(set));
        (
            format!(
                "{head}: it counts {part} of {resource} for {who} on each node (daemonset overhead), and no instance \
                 type of the NodePool has that."
            ),
            blame,
            "Keep the DaemonSet away from these nodes with its own nodeSelector. Or declare what the NodePool is for \
             (kubernetes.io/os, if one of the two is Windows): Karpenter does not count DaemonSets that cannot run \
             there.",
            command,
        )
    } else {
        let about = &told.event.involved_object;
        let workload = PodWorkload::of(told.pod, about.namespace.as_deref().unwrap_or("default"), &about.name);
        (
            format!(
                "{head}: it requests {resource} ({total}), which Karpenter knows for no instance type, even if a \
                 running node has it."
            ),
            workload.blame(),
            "Remove the request, or run these pods on a managed node group. From Karpenter 1.7 on, a NodeOverlay \
             (feature gate NodeOverlay) can add the resource to instance types.",
            workload.edit(),
        )
    };
    let because =
        "Karpenter uses what EC2 reports about instance types; it cannot know what a driver or user data adds later";
    Finding::new(Confidence::Certain, summary, event)
        .with(Evidence::new(format!("NodePool/{name}"), "spec.template.spec.requirements", resource, because))
        .blaming(blame)
        .fix(fix)
        .change("Change the workload that requests it", step)
}

/// Pods have their own security group, and Karpenter does not count the interface for it.
/// Sources: aws/karpenter-provider-aws#2217; pkg/cloudprovider/aws/instancetype.go `awsPodENI` (v0.18.1).
fn without_pod_eni(karpenter: &Karpenter, head: &str, event: Evidence) -> Finding {
    let (namespace, name) = karpenter.place();
    let set = karpenter.enable_pod_eni.as_deref().unwrap_or("absent");
    Finding::new(
        Confidence::Certain,
        format!(
            "{head}: it requests {POD_ENI}, which Karpenter {} counts only with AWS_ENABLE_POD_ENI=true in its own \
             Deployment {}.",
            karpenter.version, karpenter.deployment
        ),
        event,
    )
    .with(Evidence::new(
        format!("Deployment/{name}"),
        "spec.template.spec.containers[0].env",
        format!("AWS_ENABLE_POD_ENI {set}"),
        "without it no instance type has the resource",
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", name).namespace(namespace).field("spec.template.spec.containers[0].env"),
    )
    .fix(format!(
        "Set AWS_ENABLE_POD_ENI=true on Deployment {}. From 0.19 on, set aws.enablePodENI in the ConfigMap \
         karpenter-global-settings, and from 0.32 on nothing.",
        karpenter.deployment
    ))
    .change(
        "Let Karpenter count the resource",
        format!("kubectl set env -n {namespace} deployment/{name} AWS_ENABLE_POD_ENI=true"),
    )
}

/// Source: kubernetes-sigs/karpenter#729: Karpenter does not count shared devices.
fn multiplied(pool: &NodePool, lack: &Lack, offer: &Offer, of_pod: &str, event: Evidence) -> Finding {
    let (name, Lack { resource, total, .. }) = (pool.name(), lack);
    let Offer { claim, node, reckoned, shown, .. } = offer;
    let (node, type_) = (node.name(), node.metadata.label("node.kubernetes.io/instance-type").unwrap_or("its type"));
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for {of_pod}: its containers request {total} {resource} together. \
             Karpenter counts the physical ones of an instance type, {reckoned} of {type_}, but {node} offers {shown}: \
             its device plugin shares each among several pods (time-slicing, MPS, MIG), which Karpenter does not count."
        ),
        event,
    )
    .with(Evidence::new(
        format!("NodeClaim/{}", claim.name()),
        format!("status.allocatable['{resource}']"),
        reckoned.to_string(),
        "what Karpenter counts for the instance type; everything else that is requested would fit",
    ))
    .with(Evidence::new(
        format!("Node/{node}"),
        format!("status.allocatable['{resource}']"),
        shown.to_string(),
        "what the device plugin offers",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(format!(
        "Request {resource} in as few containers as a node has physical ones, or allow instance types with {total} of \
         them. A NodeOverlay (feature gate NodeOverlay) can declare how many a type offers."
    ))
    .change("Change what the NodePool allows", format!("kubectl edit nodepool {name}"))
}

fn small_volume(case: &Case, pool: &NodePool, lack: &Lack, gib: u64, of_pod: &str, event: Evidence) -> Finding {
    let (name, total) = (pool.name(), lack.total);
    let (kind, class) = case.class().map_or(("EC2NodeClass", ""), |class| (class.kind.as_str(), class.name()));
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for {of_pod}: {total} of ephemeral-storage is requested. Karpenter \
             counts the volume of {kind} {class} ({gib}Gi) for every instance type. It does not count the instance's \
             own disks, because instanceStorePolicy is not set."
        ),
        event,
    )
    .with(Evidence::new(
        format!("{kind}/{class}"),
        "spec.blockDeviceMappings",
        format!("{gib}Gi"),
        "Karpenter does not see what user data does with an instance's own disks",
    ))
    .fix(
        "If the instance types have disks of their own, set instanceStorePolicy: RAID0. If userData formats or mounts \
         these disks, remove that part. Otherwise give the volume of images and pods the requested size.",
    );
    match (case.class_field("spec.instanceStorePolicy"), case.class()) {
        (Some(blame), Some(class)) => {
            finding.blaming(blame).change("Declare the disks, or make the volume larger", commands::edit(class))
        }
        _ => finding,
    }
}

fn crowded(
    case: &Case,
    pool: &NodePool,
    lack: &Lack,
    of_daemons: f64,
    machine: &str,
    of_pod: &str,
    event: Evidence,
) -> Finding {
    let (name, resource, total) = (pool.name(), lack.resource, lack.total);
    let of_pool = Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements");
    // The DaemonSet that requests most of it, if one requests half.
    let set = largest(case, resource).filter(|(_, asked)| asked * 2.0 >= of_daemons).map(|(set, _)| set);
    let (blame, command) = set.map_or((of_pool, format!("kubectl edit nodepool {name}")), of_daemon_set);
    let who = set.map_or_else(String::new, |set| format!(", most of that by DaemonSet {}", set.metadata.name));
    let room = case.cluster.node(machine).and_then(|node| node.status.allocatable.get(resource)).unwrap_or_default();
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for {of_pod}: the pod and the DaemonSets of each node (daemonset \
             overhead) request {total} of {resource}, more than half of it by the DaemonSets{who}. The pool's largest \
             node so far has {room}."
        ),
        event,
    )
    .with(Evidence::new(
        format!("Node/{machine}"),
        format!("status.allocatable['{resource}']"),
        room,
        "without the DaemonSets the pod would fit",
    ))
    .blaming(blame)
    .fix("Lower what the DaemonSets request, or allow larger instance types in the NodePool.")
    .change("Lower the requests, or allow larger nodes", command)
}

fn reckoned(case: &Case, pool: &NodePool, lack: &Lack, machine: &Node, of_pod: &str, event: Evidence) -> Finding {
    let name = pool.name();
    let of_karpenter = case.karpenter().zip(case.karpenter().and_then(overhead::memory_overhead));
    let (deployment, part) = of_karpenter.map_or(("", 0.0), |(karpenter, part)| (karpenter.deployment.as_str(), part));
    let mib =
        |quantity: &str| quantity::parse(quantity).map_or_else(String::new, |bytes| format!("{:.0}Mi", bytes / MIB));
    let (asked, room) = (mib(lack.total), mib(machine.status.allocatable.get("memory").unwrap_or_default()));
    let type_ = machine.metadata.label("node.kubernetes.io/instance-type").unwrap_or_default();
    let percent = format!("{:.1}", part * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for {of_pod}: with the DaemonSets of each node {asked} of memory is \
             requested, which Karpenter finds too much for every allowed instance type. On {type_}, one of them, it \
             fits: {machine} has {room}. But Karpenter counts {percent} % less memory than EC2 reports for a type \
             (VM_MEMORY_OVERHEAD_PERCENT).",
            machine = machine.name(),
        ),
        event,
    )
    .with(Evidence::new(
        format!("Node/{}", machine.name()),
        "status.allocatable['memory']",
        room,
        format!("the memory that a node of type {type_} really has for pods"),
    ))
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "VM_MEMORY_OVERHEAD_PERCENT",
        part.to_string(),
        "the part of the memory that Karpenter subtracts for hypervisor and kernel, before it subtracts what the \
         kubelet reserves",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"))
    .fix(
        "Allow larger instance types, or request less. If these types lose less of their memory, lower \
         VM_MEMORY_OVERHEAD_PERCENT of Karpenter (Helm: settings.vmMemoryOverheadPercent). From 1.1 on, Karpenter \
         learns the real size from the first node of a type that it launches.",
    )
    .change("Allow larger instance types", format!("kubectl edit nodepool {name}"))
}
