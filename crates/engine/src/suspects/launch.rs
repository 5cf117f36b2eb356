//! EC2 refuses the launch, and Karpenter does not pass on the reason.

use super::differential::key;
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::Case;
use crate::explain::{commands, launch_error};

const BEHIND: &[&str] = &["LaunchFailed"];

/// A message that names no fault: if it names one, the verdict reports it.
fn is_unexplained(case: &Case) -> bool {
    let launched = case.claim.and_then(|claim| claim.condition("Launched"));
    launched.is_none_or(|c| launch_error::named(&c.message).is_none())
}

pub const IMAGE_NOT_AVAILABLE: CauseCandidate = CauseCandidate {
    cause: "ImageNotAvailable",
    stages: &[Stage::Launch],
    behind: BEHIND,
    weigh: |case, differential| {
        let class = case.class().filter(|_| case.claim.is_some() && is_unexplained(case))?;
        let chosen = class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none());
        let drifted = case.image_drifted_siblings().next().is_some();
        let ids: Vec<&str> = class.status.amis.iter().map(|ami| ami.id.as_str()).filter(|id| !id.is_empty()).collect();
        let names: Vec<&str> = class.status.amis.iter().map(|ami| ami.name.as_str()).collect();
        let first = ids.first()?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the image (AMI) {} cannot be launched: it is still pending, was withdrawn, or is not \
                     shared with this account.",
                    names.first().filter(|name| !name.is_empty()).unwrap_or(first)
                ),
                format!(
                    "aws ec2 describe-images --image-ids {} --query 'Images[].[ImageId,State,StateReason]'",
                    ids.join(" ")
                ),
                "a state other than available, or InvalidAMIID.NotFound",
            )
            .telling((chosen && drifted).then_some(
                "the class now selects another image than its running nodes have, so Karpenter wants to replace them",
            ))
            .consistent(chosen.then_some("the class selects its image without an alias of AWS's own images"))
            .unlikely((differential.class_joins && !drifted).then_some("nodes of this class have been launched")),
        )
    },
};

pub const VOLUME_KEY: CauseCandidate = CauseCandidate {
    cause: "VolumeKeyRefused",
    stages: &[Stage::Launch],
    behind: &["LaunchFailed", "InstanceDiesAtStart"],
    weigh: |case, differential| {
        let class = case.class()?;
        if !is_unexplained(case) {
            return None;
        }
        let key = key(class)?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps EC2 is not allowed to use the KMS key {key}, which encrypts the volumes of {} {}.",
                    class.kind,
                    class.name()
                ),
                format!("aws kms describe-key --key-id {key} --query 'KeyMetadata.[KeyState,KeyManager]'"),
                "a state other than Enabled; then read its policy for Karpenter's role",
            )
            .telling(differential.differs("volume key").map(|(nearest, key)| key.shown(nearest)))
            .consistent(Some("the class names its own key for its volumes"))
            .unlikely(differential.text_joins.then_some("nodes with the same node class text have been launched")),
        )
    },
};

pub const RIGHTS: CauseCandidate = CauseCandidate {
    cause: "LaunchRightsMissing",
    stages: &[Stage::Launch],
    behind: &["LaunchFailed", "NodeClassNotReady"],
    weigh: |case, differential| {
        let unexplained = is_unexplained(case).then_some("the message names no fault of the node's settings")?;
        let account = case.cluster.service_accounts().find(|account| account.metadata.name.contains("karpenter"));
        let role = account.and_then(|account| account.role_arn()).unwrap_or("the role of Karpenter's controller");
        Some(
            Suspicion::new(
                format!(
                    "Perhaps {role} is not allowed to create what the launch needs: fleet, launch template, instance \
                     profile, or iam:PassRole."
                ),
                format!("{} | grep -iE 'unauthorized|accessdenied|passrole'", commands::karpenter_log(case)),
                "UnauthorizedOperation or AccessDenied, with the action",
            )
            .consistent(Some(unexplained))
            .consistent(differential.nothing_joined())
            .unlikely(differential.class_joins.then_some("nodes of this class have been launched")),
        )
    },
};
