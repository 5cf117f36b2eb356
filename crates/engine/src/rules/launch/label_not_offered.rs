//! Pods select a label that no NodePool gives its nodes, or one for which Karpenter ignores the pods.

use crate::case::unplaced::{Unplaced, asked, restricted_label};
use crate::facts::workload::PodWorkload;
use crate::objects::{Node, NodePool, Pod};
use crate::rules::prelude::*;
use chrono::TimeDelta;

rule! {
    cause: LabelNotOffered,
    summary: "Pods select a label that no NodePool gives its nodes, or one that Karpenter accepts from no pod",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Nodes, Events, Pods, Deployments],
    versions: "all; Karpenter's own labels that pods may not select since 0.33",
}

/// The NodePool may be applied after its pods.
const APPLIED_WITHIN: TimeDelta = TimeDelta::minutes(10);
/// Pods for Nodes that Karpenter does not create wait for room there, or for another autoscaler to add one.
const SERVED_WITHIN: TimeDelta = TimeDelta::hours(1);

/// Labels of Nodes that Karpenter does not create: these pods are not for Karpenter.
/// Sources: EKS user guide, "Managed node groups"; eksctl pkg/apis/eksctl.io/v1alpha5/types.go `NodeGroupNameLabel`;
/// EKS user guide, "Control if a workload is deployed on EKS Auto Mode nodes".
const OF_OTHERS: [&str; 3] =
    ["eks.amazonaws.com/nodegroup", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/compute-type"];

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    if let Some((told, key)) = case.unplaced().find_map(|told| Some((told, told.unoffered_label(case.cluster, pool)?)))
    {
        return not_offered(case, pool, &told, key);
    }
    let own = |pod: &&Pod| restricted_label(pod).is_some_and(|key| labeled(case, pod, key).is_none());
    let pod = case.ignored().filter(own).min_by_key(|pod| pod.metadata.creation_timestamp)?;
    ignored(case, pool, pod)
}

/// A Node with the label that Karpenter did not create: pods may be meant for it.
fn labeled<'w>(case: &Case<'w>, pod: &Pod, key: &str) -> Option<&'w Node> {
    let has = |node: &&Node| match asked(pod, key).split_once('=') {
        Some((_, value)) => node.metadata.label(key) == Some(value),
        None => node.metadata.label(key).is_some(),
    };
    case.cluster.nodes().filter(|node| !is_karpenters(node)).find(has)
}

/// Sources: core pkg/apis/v1/labels.go (v1.14.1), pkg/apis/v1alpha5/labels.go (v0.31.0).
fn is_karpenters(node: &Node) -> bool {
    ["karpenter.sh/nodepool", "karpenter.sh/provisioner-name"].iter().any(|key| node.metadata.label(key).is_some())
}

fn not_offered(case: &Case, pool: &NodePool, told: &Unplaced, key: &str) -> Option<Opinion> {
    let about = &told.event.involved_object;
    if OF_OTHERS.contains(&key) {
        return None;
    }
    let wanted = told.pod.map_or_else(|| key.to_owned(), |pod| asked(pod, key));
    let later = case.cluster.nodes().find(|node| is_karpenters(node) && node.metadata.label(key).is_some());
    // A label that Karpenter's Nodes have too does not mark other Nodes.
    let elsewhere = told.pod.filter(|_| later.is_none()).and_then(|pod| labeled(case, pod, key));
    // Jobs wait in a queue.
    let queued = told.pod.is_some_and(|pod| pod.workload().0 == "Job");
    // If a pod was not read, it may be one of a queue.
    let of_others = |node: &Node| !is_karpenters(node) && node.metadata.label(key).is_some();
    if elsewhere.is_some() && queued || told.pod.is_none() && case.cluster.nodes().any(of_others) {
        return None;
    }
    let within = if elsewhere.is_some() { SERVED_WITHIN } else { APPLIED_WITHIN };
    let since = told.pod.and_then(|pod| pod.metadata.creation_timestamp).into_iter().chain(told.since()).min();
    let due = since.and_then(|since| since.checked_add_signed(within))?;
    if due > case.now {
        return Some(Opinion::LookAgain(due));
    }
    let more = match (elsewhere, later) {
        (Some(node), _) => format!(". Node {}, which Karpenter did not create, has it, but no room", node.name()),
        (None, Some(node)) => {
            format!(
                ". Node {} has it, but the label was added after launch, so Karpenter does not count it",
                node.name()
            )
        }
        (None, None) => String::new(),
    };
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches nothing for Pod {namespace}/{}: it selects the label {wanted}, which no NodePool gives \
             its nodes{more}.",
            about.name
        ),
        Evidence::new(
            format!("Event Pod/{}", about.name),
            "message",
            told.event.said(),
            "your own label must be in the NodePool, or none of its nodes will have it",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{}", pool.name()),
        "spec.template",
        format!("neither a label nor a requirement {key}"),
        "and no other NodePool has it",
    ))
    .fix(format!(
        "Add the label {wanted} to the NodePool that should serve the pods (spec.template.metadata.labels, or a \
         requirement), with the taint that the pods tolerate, if there is one. Or remove it from the pods' \
         nodeSelector or node affinity."
    ));
    to_change(finding, pool, told.pod, namespace, &about.name).into()
}

fn ignored(case: &Case, pool: &NodePool, pod: &Pod) -> Option<Opinion> {
    let key = restricted_label(pod)?;
    let due = pod.metadata.creation_timestamp.and_then(|made| made.checked_add_signed(APPLIED_WITHIN));
    let due = due?;
    if due > case.now {
        return Some(Opinion::LookAgain(due));
    }
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &*pod.metadata.name);
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Karpenter launches nothing for Pod {namespace}/{name}: it selects the label {}. Karpenter ignores a pod \
             that names a label of karpenter.sh other than karpenter.sh/nodepool and karpenter.sh/capacity-type, in \
             any term of its affinity.",
            asked(pod, key)
        ),
        Evidence::new(
            format!("Pod/{name}"),
            "spec.nodeSelector, spec.affinity.nodeAffinity",
            asked(pod, key),
            "the label is restricted: Karpenter says so in its debug log, and later versions in an Event of the pod",
        ),
    )
    .fix(format!(
        "Remove {key} from the pods' nodeSelector and node affinity. To name a NodePool, use karpenter.sh/nodepool."
    ));
    to_change(finding, pool, Some(pod), namespace, name).into()
}

fn to_change(finding: Finding, pool: &NodePool, pod: Option<&Pod>, namespace: &str, name: &str) -> Finding {
    let workload = PodWorkload::of(pod, namespace, name);
    finding
        .blaming(workload.blame().field(workload.spec()))
        .change("Change what the pods select", workload.edit())
        .change("Or what the NodePool gives its nodes", format!("kubectl edit nodepool {}", pool.name()))
}
