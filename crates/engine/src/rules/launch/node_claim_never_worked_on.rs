//! A NodeClaim that Karpenter made and never worked on, though it runs: its work on claims fails before it can say so.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::Condition;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::commands;
use crate::upstream::karpenter::{LAUNCH_TIMEOUT, REGISTRATION_TIMEOUT};

pub static RULE: Rule = Rule {
    cause: "NodeClaimNeverWorkedOn",
    summary: "Karpenter made the NodeClaim, and neither launches it nor gives it up, past its own timeout",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClasses, Input::Deployments],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NodeClaimNeverWorkedOn.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(claim), Some(karpenter)) = (case.claim, case.karpenter()) else { return Opinion::Silent };
    // What fails says so in the condition; what is tried says so too.
    let untouched = |c: &Condition| c.status == "Unknown" && matches!(c.reason.as_str(), "AwaitingReconciliation" | "");
    let Some(launched) = claim.condition("Launched").filter(|c| untouched(c)) else { return Opinion::Silent };
    if claim.metadata.deletion_timestamp.is_some()
        || karpenter.stopped.is_some()
        || case.class().is_some_and(|c| !c.is_ec2())
    {
        return Opinion::Silent;
    }
    // Karpenter gives a claim up itself, in the same step as it would launch it. Twice that time is no delay.
    let timeout = if karpenter.has_launch_timeout() { LAUNCH_TIMEOUT } else { REGISTRATION_TIMEOUT };
    if case.now - case.wait.since < timeout * 2 {
        return Opinion::Silent;
    }
    let name = claim.name();
    let reserved = claim.spec.requirements.iter().any(|r| {
        r.key == "karpenter.sh/capacity-type" && r.operator == "In" && r.values.iter().any(|value| value == "reserved")
    });
    let of_pool = claim.node_pool().map_or_else(String::new, |pool| format!(" of NodePool {pool}"));
    // Sources: karpenter-provider-aws#8789, karpenter#2502 (capacityReservationTypeFilter, gone in v1.9.0).
    let hint =
        if reserved { " It asks for reserved capacity, on whose offerings versions 1.6 to 1.8 panic." } else { "" };
    let (namespace, deployment) = karpenter.place();
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "NodeClaim {name}{of_pool} was never launched: Karpenter {} runs, and since {} it has neither worked on it nor given it up: its work on the claim panics or hangs, which only its log tells.{hint}",
            karpenter.version,
            case.since()
        ),
        Evidence::new(
            format!("NodeClaim/{name}"),
            r#"status.conditions[?(@.type=="Launched")]"#,
            launched.shown(),
            "a launch that was tried says how it ended",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].image",
        karpenter.version.to_string(),
        format!("this version deletes a claim that is not launched after {} minutes, in the step that did not come to its end", timeout.num_minutes()),
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", deployment)
            .namespace(namespace)
            .field("spec.template.spec.containers[0].image"),
    )
    .fix("Read Karpenter's log for the claim: a panic is a fault of this version, so move to a newer one, or leave out what it stumbles over (a capacity reservation, a field of the node class).")
    .step(
        Risk::Inspect,
        "See what Karpenter says of it",
        Some(format!("{} | grep -E 'panic|{name}'", commands::karpenter_log(case))),
    );
    finding.into()
}
