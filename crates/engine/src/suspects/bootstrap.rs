//! The instance ends, or its boot stops before the kubelet.

use super::differential::{changed, key};
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::case::Case;

fn console(case: &Case) -> Option<String> {
    Some(format!("aws ec2 get-console-output --latest --output text --instance-id {}", case.instance_id()?))
}

fn state(case: &Case) -> Option<String> {
    let id = case.instance_id()?;
    Some(format!(
        "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].[State.Name,StateReason]'"
    ))
}

pub const USER_DATA: CauseCandidate = CauseCandidate {
    cause: "BootstrapFailed",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class().filter(|_| !differential.text_joins)?;
        let text = class.spec.user_data.as_deref().filter(|text| !text.trim().is_empty())?;
        let what = if text.contains("[settings") { "its settings (TOML)" } else { "its scripts or settings" };
        Some(
            Suspicion::new(
                format!("User data (userData) of {} {} stops the boot before the kubelet: {what} fail on the machine.", class.kind, class.name()),
                console(case)?,
                "the last lines before it stops: cloud-init, nodeadm, bootstrap.sh, or Bottlerocket's early-boot-config and bootstrap containers",
            )
            .telling(differential.differs("user data").map(|(nearest, line)| line.shown(nearest)))
            .telling(changed(case).filter(|_| differential.class_joins))
            .consistent(differential.nothing_joined())
            .consistent(differential.nothing_joined().map(|_| "the class has user data of its own")),
        )
    },
};

/// What all machines share works, and this one's boot met a bad moment.
pub const GAVE_UP_ONCE: CauseCandidate = CauseCandidate {
    cause: "BootstrapFailed",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class().filter(|_| differential.is_single(case))?;
        let own_image = class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none());
        Some(
            Suspicion::new(
                "The boot of this one machine gave up: nodeadm-run, containerd or a download was too slow, and is not tried again.",
                console(case)?,
                "nodeadm-run or bootstrap.sh in error: timeout, connection refused by containerd, the sandbox (pause) image",
            )
            .telling(Some(SINGLE))
            .consistent(own_image.then_some("the image is not AWS's own: what it starts may be slow to come up")),
        )
    },
};

const SINGLE: &str = "machines of the same text of the class, the same image and the same zone join";

pub const EMPTY_NODE_NAME: CauseCandidate = CauseCandidate {
    cause: "NodeNameEmptyAtBoot",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let single = differential.is_single(case).then_some(SINGLE)?;
        Some(
            Suspicion::new(
                "EC2 had not told the instance's private DNS name when the kubelet started, so its Node has no name.",
                console(case)?,
                "kubelet: an empty node name, or \"hostname-override\" without a value",
            )
            .telling(Some(single)),
        )
    },
};

pub const INSTANCE_ENDED: CauseCandidate = CauseCandidate {
    cause: "InstanceEnded",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let single = differential.is_single(case).then_some(SINGLE)?;
        let id = case.instance_id()?;
        Some(
            Suspicion::new(
                format!("The instance {id} has ended, or its hardware fails."),
                state(case)?,
                "a state other than running, and its reason",
            )
            .telling(Some(single)),
        )
    },
};

pub const VOLUME_KEY: CauseCandidate = CauseCandidate {
    cause: "VolumeKeyRefused",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class().filter(|_| !differential.text_joins || differential.together().is_some())?;
        let key = key(class);
        let named = key.unwrap_or("the account's default key");
        Some(
            Suspicion::new(
                format!("EC2 ends the instance at once: it may not use {named} to decrypt its volume (KMS)."),
                state(case)?,
                "terminated, Client.InternalError or Client.InvalidKMSKey.InvalidState",
            )
            .telling(
                differential.differs("volume key").filter(|_| key.is_some()).map(|(nearest, key)| key.shown(nearest)),
            )
            .consistent(key.and(differential.together()).map(|_| "the class names a key of its own for its volumes"))
            .consistent(differential.together()),
        )
    },
};
