//! A NodePool whose limits leave no room for one more machine of any type that it allows, though pods wait for it.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::extended::{EFA, Offer, never_attached};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::static_drift::{self, NoRoom};
use crate::objects::input::Input;
use crate::objects::{Node, NodeClaim, NodePool, Taint};
use crate::rules::Rule;
use crate::upstream::startup_taint;
use crate::upstream::unplaced::PlacementObstacle;

pub static RULE: Rule = Rule {
    cause: "NodePoolAtItsLimit",
    summary: "The NodePool's limits leave no room for another machine, and pods wait for it, or what it should replace",
    stages: &[Stage::Launch],
    reads: &[
        Input::Nodes,
        Input::NodeClaims,
        Input::NodePools,
        Input::NodeClasses,
        Input::Events,
        Input::Pods,
        Input::Deployments,
    ],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodePoolAtItsLimit.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    if case.wait.symptom == Symptom::DriftHeld {
        return static_drift::no_room(case.cluster, pool).map_or(Opinion::Silent, |held| of_drift(pool, &held).into());
    }
    let limits: Vec<String> = pool.spec.limits.iter().map(|(what, most)| format!("{what} {most}")).collect();
    // A limit of nothing is how a NodePool is switched off.
    let off = pool.spec.limits.iter().any(|(_, most)| most.trim_end_matches(char::is_alphabetic) == "0");
    let Some(told) = case.unplaced().find(|u| u.refusal == PlacementObstacle::Limits && !off && !limits.is_empty())
    else {
        return Opinion::Silent;
    };
    if kept_empty(case, pool) {
        return Opinion::Silent;
    }
    let (name, limits) = (pool.name(), limits.join(", "));
    let plain = told.pod.and_then(|pod| never_attached(case.cluster, pool, pod));
    let plain = plain.filter(|_| case.class().is_some_and(|class| class.spec.network_interfaces.is_empty()));
    let beside = plain.map_or_else(String::new, |Offer { node, claim, .. }| {
        format!(
            " Node {} would have room, but no {EFA}: Karpenter attaches such interfaces to machines only that are made for pods which ask for them, and NodeClaim {} was not.",
            node.name(),
            claim.name()
        )
    });
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: its limits ({limits}) leave no room for another machine of any type that it allows.{beside}"
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.limits",
            limits.clone(),
            "a machine that would exceed any of them is not launched, however much is left",
        ),
    )
    .with(Evidence::new(
        format!("Event Pod/{}", told.event.involved_object.name),
        "message",
        told.event.said(),
        "Karpenter has no instance type that fits into what is left",
    ));
    let finding = match plain {
        Some(Offer { claim, .. }) => without_efa(finding, case, claim),
        None => finding
            .fix("Raise the limits by at least one machine of the types that are allowed, or allow smaller ones."),
    };
    finding
        .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.limits"))
        .step(
            Risk::Inspect,
            "See what counts against the limits",
            Some(format!("kubectl get nodepool {name} -o jsonpath='{{.status.resources}}'")),
        )
        .step(Risk::Mutating, "Raise the limits", Some(format!("kubectl edit nodepool {name}")))
        .into()
}

/// Interfaces are attached at the launch only.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `getEFACountForInstance`.
fn without_efa(finding: Finding, case: &Case, claim: &NodeClaim) -> Finding {
    let class = case.class().map_or("", |class| class.name());
    finding
        .with(Evidence::new(
            format!("NodeClaim/{}", claim.name()),
            "spec.resources.requests",
            format!("none of {EFA}"),
            "interfaces cannot be added to a machine that runs",
        ))
        .fix(format!("Raise the limits by one machine, which Karpenter then makes with {EFA} where its type has any, or make room: delete NodeClaim {} once what runs there may go. From Karpenter 1.11 on spec.networkInterfaces of EC2NodeClass {class} gives each machine these interfaces.", claim.name()))
}

/// A static NodePool that is full has no room for a replacement.
fn of_drift(pool: &NodePool, held: &NoRoom) -> Finding {
    let name = pool.name();
    let NoRoom { limit, replicas, count, .. } = held;
    let (have, first) = if *count == 1 { ("has", "") } else { ("have", "the first ") };
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} is static, and its limit (limits.nodes {limit}) leaves no room beside its {replicas} replicas: Karpenter makes a replacement before it ends a machine that drifted, so the {count} that {have} drifted, {first}at {}, stay as they are.",
            crate::case::timestamp(held.since)
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.limits.nodes",
            limit.to_string(),
            "a replacement would be one node more than the limit, so Karpenter passes over the NodePool",
        ),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.replicas",
        replicas.to_string(),
        "so many machines run, none of which is being deleted",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.limits.nodes"))
    .fix(format!(
        "Raise limits.nodes above spec.replicas, by as many machines as may be replaced at a time; or delete the drifted NodeClaims one by one: Karpenter fills up to {replicas} again."
    ))
    .step(Risk::Inspect, "See which have drifted", Some(format!("kubectl get nodeclaims -l karpenter.sh/nodepool={name} -o wide")))
    .step(
        Risk::Mutating,
        "Leave room for one replacement",
        Some(format!(
            "kubectl patch nodepool {name} --type merge -p '{{\"spec\":{{\"limits\":{{\"nodes\":\"{}\"}}}}}}'",
            replicas.saturating_add(1)
        )),
    )
}

/// Whether a machine of the NodePool takes no pods yet, for which there would be room: what keeps it empty is what they
/// wait for.
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
