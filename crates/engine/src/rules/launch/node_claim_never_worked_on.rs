//! Karpenter runs, but never worked on a NodeClaim that it created: its work on claims fails before it can report it.

use crate::explain::commands;
use crate::objects::Condition;
use crate::rules::prelude::*;
use crate::upstream::karpenter::{LAUNCH_TIMEOUT, REGISTRATION_TIMEOUT};

rule! {
    cause: NodeClaimNeverWorkedOn,
    summary: "Karpenter created the NodeClaim, but neither launches it nor gives it up after its own timeout",
    stages: [Launch],
    reads: [NodeClasses, Deployments],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, karpenter) = (case.claim?, case.karpenter()?);
    // The condition says what failed, and what was tried.
    let untouched = |c: &Condition| c.status == "Unknown" && matches!(c.reason.as_str(), "AwaitingReconciliation" | "");
    let launched = claim.condition("Launched").filter(|c| untouched(c))?;
    if claim.metadata.deletion_timestamp.is_some()
        || karpenter.stopped.is_some()
        || case.class().is_some_and(|c| !c.is_ec2())
    {
        return None;
    }
    // Karpenter gives a claim up in the same step in which it would launch it. Twice that time is more than a delay.
    let timeout = if karpenter.has_launch_timeout() { LAUNCH_TIMEOUT } else { REGISTRATION_TIMEOUT };
    if case.now - case.wait.since < timeout * 2 {
        return None;
    }
    let name = claim.name();
    let reserved = claim.spec.requirements.iter().any(|r| {
        r.key == "karpenter.sh/capacity-type" && r.operator == "In" && r.values.iter().any(|value| value == "reserved")
    });
    let of_pool = claim.node_pool().map_or_else(String::new, |pool| format!(" of NodePool {pool}"));
    // Sources: karpenter-provider-aws#8789, karpenter#2502 (capacityReservationTypeFilter, gone in v1.9.0).
    let hint =
        if reserved { " It requires reserved capacity, and versions 1.6 to 1.8 panic over its offerings." } else { "" };
    let (namespace, deployment) = karpenter.place();
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "NodeClaim {name}{of_pool} was never launched: Karpenter {} runs, but since {} it has neither worked on it \
             nor given it up. Its work on the claim panics or hangs, which only its log shows.{hint}",
            karpenter.version,
            case.since()
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            r#"status.conditions[?(@.type=="Launched")]"#,
            launched.shown(),
            "a launch that Karpenter tried says how it ended",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].image",
        karpenter.version.to_string(),
        format!(
            "this version deletes a claim that is not launched after {} minutes, in the step that did not finish",
            timeout.num_minutes()
        ),
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", deployment)
            .namespace(namespace)
            .field("spec.template.spec.containers[0].image"),
    )
    .fix(
        "Read Karpenter's log for the claim. If it shows a panic, this version has a bug: upgrade, or remove what \
         triggers the panic (a capacity reservation, a field of the node class).",
    )
    .inspect("See what Karpenter logs about it", format!("{} | grep -E 'panic|{name}'", commands::karpenter_log(case)));
    finding.into()
}
