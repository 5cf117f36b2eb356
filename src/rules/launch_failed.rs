//! The cloud refused the launch, and Karpenter tries again: the condition says why.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::input::Input;

pub static RULE: Rule = Rule {
    cause: "LaunchFailed",
    summary: "The cloud refuses to launch the instance, for the reason in the Launched condition",
    stages: &[Stage::Launch],
    reads: &[Input::NodeClaims, Input::NodeClasses],
    versions: "reasons other than LaunchFailed since Karpenter 1.2.0",
    page: include_str!("../../docs/causes/LaunchFailed.md"),
    check,
};

/// Reason, what to mend, and the field of the node class it is about; none where the account or Karpenter's role is.
/// Source: karpenter-provider-aws v1.14.1 pkg/errors/errors.go `ToReasonMessage`.
const REASONS: &[(&str, &str, Option<&str>)] = &[
    ("SpotSLRCreationFailed", "Create the service-linked role AWSServiceRoleForEC2Spot, or let Karpenter's role create it.", None),
    (
        "Unauthorized",
        "Give Karpenter's role the permission that the message names; a service control policy or permission boundary may take it away.",
        None,
    ),
    ("AMIAuthorizationFailure", "Share the image with this account.", Some("spec.amiSelectorTerms")),
    ("AMINotFound", "Select an image that exists in this region and is shared with this account.", Some("spec.amiSelectorTerms")),
    (
        "InvalidAMIID",
        "Select an image that is available: a pending, failed or deregistered one cannot start.",
        Some("spec.amiSelectorTerms"),
    ),
    ("SecurityGroupSubnetVPCMismatch", "Select security groups and subnets of one VPC.", Some("spec.securityGroupSelectorTerms")),
    ("InstanceProfileNameInvalid", "Create the instance profile, or name one that exists.", Some("spec.instanceProfile")),
    ("UserDataSizeLimitExceeded", "Shorten the user data: EC2 takes 16 KiB after rendering.", Some("spec.userData")),
    ("InsufficientFreeAddressesInSubnet", "Use larger or more subnets.", Some("spec.subnetSelectorTerms")),
    ("SpotQuotaExceeded", "Raise the spot quota.", None),
    ("VCPULimitExceeded", "Raise the vCPU quota.", None),
    ("FleetQuotaExceeded", "Raise the fleet quota.", None),
    ("RequestLimitExceeded", "Wait, or find who else calls EC2 so often.", None),
    ("AccountPendingVerification", "Wait until AWS has verified the account.", None),
    ("LaunchTemplateNotFound", "Wait for Karpenter to make it again; find who deletes launch templates.", None),
];

fn check(case: &Case) -> Opinion {
    let Some(claim) = case.claim else { return Opinion::Silent };
    let Some(launched) = claim.condition("Launched").filter(|c| !c.is_true()) else { return Opinion::Silent };
    if matches!(launched.reason.as_str(), "AwaitingReconciliation" | "" | "Launched") {
        return Opinion::RuledOut("Karpenter reports no launch error".to_owned());
    }
    let known = REASONS.iter().find(|(reason, ..)| *reason == launched.reason);
    let said = if launched.message.is_empty() { launched.reason.to_string() } else { launched.message.trim_end_matches('.').to_owned() };
    let confidence = if known.is_some() { Confidence::Certain } else { Confidence::Likely };
    let what = profile(case, &launched.reason).map_or_else(String::new, |name| format!(", the node class names {name}"));
    let summary = format!("The cloud refuses to launch NodeClaim {}: {said} ({}{what}).", claim.name(), launched.reason);
    let finding = Finding::new(
        confidence,
        summary,
        saw(
            case.subject(),
            r#"status.conditions[?(@.type=="Launched")]"#,
            launched.shown(),
            "Karpenter tries again until its launch timeout",
        ),
    )
    .fix(known.map_or("Mend what the message names.", |(_, fix, _)| fix))
    .step(
        Risk::Inspect,
        "See the whole error",
        Some(format!("kubectl logs -A -l app.kubernetes.io/name=karpenter --tail=-1 | grep {}", claim.name())),
    );
    match (case.class(), known) {
        (Some(class), Some((.., Some(field)))) => {
            finding.blaming(Blame::object(&class.api_version, &class.kind, class.name()).field(*field)).into()
        }
        _ => finding.into(),
    }
}

/// The instance profile that the cloud does not know.
fn profile<'w>(case: &Case<'w>, reason: &str) -> Option<&'w str> {
    let class = case.class().filter(|_| reason == "InstanceProfileNameInvalid")?;
    class.spec.instance_profile.as_deref().or(class.status.instance_profile.as_deref())
}
