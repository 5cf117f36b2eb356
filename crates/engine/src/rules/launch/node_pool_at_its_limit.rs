//! A NodePool whose limits leave no room for one more node of any allowed type, although pods wait for it.

use crate::case::extended::{EFA, Offer, never_attached};
use crate::case::static_drift::{self, NoRoom};
use crate::case::unplaced::Unplaced;
use crate::objects::{Node, NodeClaim, NodePool, Pod, Taint, quantity};
use crate::rules::prelude::*;
use crate::upstream::startup_taint;
use crate::upstream::unplaced::PlacementObstacle;

rule! {
    cause: NodePoolAtItsLimit,
    summary: "The NodePool's limits leave no room for another node, and pods wait for it, or a drifted node that it \
              should replace",
    stages: [Launch],
    reads: [Nodes, NodeClaims, NodePools, NodeClasses, Events, Pods, Deployments],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    if case.wait.symptom == Symptom::DriftHeld {
        return static_drift::no_room(case.cluster, pool).map(|held| of_drift(pool, &held).into());
    }
    let limits: Vec<String> = pool.spec.limits.iter().map(|(what, most)| format!("{what} {most}")).collect();
    let is_full = |u: &Unplaced| u.refusal == PlacementObstacle::Limits && !is_forbidden(pool, u.pod);
    let told = case.unplaced().find(|u| is_full(u) && !limits.is_empty())?;
    if kept_empty(case, pool) {
        return None;
    }
    let (name, limits) = (pool.name(), limits.join(", "));
    let plain = told.pod.and_then(|pod| never_attached(case.cluster, pool, pod));
    let plain = plain.filter(|_| case.class().is_some_and(|class| class.spec.network_interfaces.is_empty()));
    let beside = plain.map_or_else(String::new, |Offer { node, claim, .. }| {
        format!(
            " Node {} would have room, but no {EFA}: Karpenter attaches such interfaces only to nodes that it launches \
             for pods that request them, and NodeClaim {} was not launched for such a pod.",
            node.name(),
            claim.name()
        )
    });
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: its limits ({limits}) leave no room for another node of any allowed \
             type.{beside}"
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.limits",
            limits.clone(),
            "Karpenter launches no node that would exceed one of them, however much is left",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", told.event.involved_object.name),
        "message",
        told.event.said(),
        "Karpenter has no instance type that fits into the remaining room",
    ));
    let finding = match plain {
        Some(Offer { claim, .. }) => without_efa(finding, case, claim),
        None => finding.fix("Raise the limits by at least one node of the allowed types, or allow smaller types."),
    };
    finding
        .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.limits"))
        .inspect(
            "See what counts against the limits",
            format!("kubectl get nodepool {name} -o jsonpath='{{.status.resources}}'"),
        )
        .change("Raise the limits", format!("kubectl edit nodepool {name}"))
        .into()
}

/// Whether a limit of zero keeps every node of the NodePool from the pod, as somebody meant it to.
fn is_forbidden(pool: &NodePool, pod: Option<&Pod>) -> bool {
    let asks_for_it = |pod: &Pod| {
        let mut asked = pod.requests().filter(|(_, asked)| quantity::parse(asked) != Some(0.0));
        asked.any(|(resource, _)| pool.allows_none_of(resource))
    };
    pool.is_switched_off() || pod.is_some_and(asks_for_it)
}

/// Karpenter attaches interfaces only at launch.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `getEFACountForInstance`.
fn without_efa(finding: Finding, case: &Case, claim: &NodeClaim) -> Finding {
    let class = case.class().map_or("", |class| class.name());
    finding
        .with(Evidence::new(
            format!("NodeClaim/{}", claim.name()),
            "spec.resources.requests",
            format!("none of {EFA}"),
            "interfaces cannot be added to a running instance",
        ))
        .fix(format!(
            "Raise the limits by one node, which Karpenter then launches with {EFA} if its type has any. Or make room: \
             delete NodeClaim {} when its pods may go. From Karpenter 1.11 on, spec.networkInterfaces of EC2NodeClass \
             {class} gives each node these interfaces.",
            claim.name()
        ))
}

/// A static NodePool that is full has no room for a replacement.
fn of_drift(pool: &NodePool, held: &NoRoom) -> Finding {
    let name = pool.name();
    let NoRoom { limit, replicas, count, .. } = held;
    let (have, first) = if *count == 1 { ("has", "") } else { ("have", "the first ") };
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} is static, and its limit (limits.nodes {limit}) leaves no room beside its {replicas} \
             replicas. Karpenter creates a replacement before it removes a drifted node, so the {count} that {have} \
             drifted, {first}at {}, stay as they are.",
            crate::case::timestamp(held.since)
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.limits.nodes",
            limit.to_string(),
            "a replacement would exceed the limit by one node, so Karpenter skips the NodePool",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.replicas",
        replicas.to_string(),
        "this number of nodes runs, and none of them is being deleted",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.limits.nodes"))
    .fix(format!(
        "Raise limits.nodes above spec.replicas, by the number of nodes that may be replaced at a time. Or delete the \
         drifted NodeClaims one by one: Karpenter fills up to {replicas} again."
    ))
    .inspect("See which have drifted", format!("kubectl get nodeclaims -l karpenter.sh/nodepool={name} -o wide"))
    .change(
        "Leave room for one replacement",
        format!(
            "kubectl patch nodepool {name} --type merge -p '{{\"spec\":{{\"limits\":{{\"nodes\":\"{}\"}}}}}}'",
            replicas.saturating_add(1)
        ),
    )
}

/// Whether a node of the NodePool is still empty but would have room: what keeps it empty is what the pods wait for.
fn kept_empty(case: &Case, pool: &NodePool) -> bool {
    let is_open = |claim: &NodeClaim| {
        let of_agent = |taint: &Taint| {
            startup_taint::owner(taint).is_some() && !claim.spec.taints.iter().any(|own| own.matches(taint))
        };
        let held = |node: &&Node| node.spec.taints.iter().any(of_agent);
        !claim.is_true("Initialized") || case.cluster.nodes_of(claim).iter().any(held)
    };
    case.cluster.claims_of_pool(pool.name()).any(is_open)
}
