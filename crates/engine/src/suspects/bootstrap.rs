//! The instance ends, or its boot stops before the kubelet.

use super::command::{CONSOLE, STATE};
use super::differential::{changed, key};
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;

pub const USER_DATA: CauseCandidate = CauseCandidate {
    cause: "BootstrapFailed",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        if differential.text_joins {
            return None;
        }
        let text = class.spec.user_data.as_deref().filter(|text| !text.trim().is_empty())?;
        let what = if text.contains("[settings") { "its settings (TOML)" } else { "its scripts or settings" };
        Some(
            Suspicion::new(
                format!(
                    "Perhaps user data (userData) of {} {} stops the boot before the kubelet: {what} fail on the \
                     instance.",
                    class.kind,
                    class.name()
                ),
                CONSOLE,
                "the last lines before it stops: cloud-init, nodeadm, bootstrap.sh, or Bottlerocket's \
                 early-boot-config and bootstrap containers",
            )
            .telling(differential.differs("user data").map(|(nearest, line)| line.shown(nearest)))
            .telling(changed(case).filter(|_| differential.class_joins))
            .consistent(differential.nothing_joined())
            .consistent(differential.nothing_joined().map(|_| "the class has user data of its own")),
        )
    },
};

/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>: if a token is
/// required, a request without one gets no answer.
pub const NO_TOKEN: CauseCandidate = CauseCandidate {
    cause: "MetadataServiceOff",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        class.spec.metadata_options.http_tokens.as_deref().filter(|tokens| *tokens == "required")?;
        let (nearest, tokens) = differential.differs("httpTokens")?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the image asks for its user data without a token (IMDSv1), and {} {} requires one \
                     (httpTokens).",
                    class.kind,
                    class.name()
                ),
                CONSOLE,
                "401 Unauthorized of 169.254.169.254, or a boot that ends without user data",
            )
            .telling(Some(tokens.shown(nearest))),
        )
    },
};

pub const KUBELET_SETTINGS: CauseCandidate = CauseCandidate {
    cause: "KubeletRefusesConfiguration",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        let template = differential.template(case);
        let own = !class.spec.kubelet.is_empty();
        let whose = match (&template, case.pool()) {
            (Some(_), Some(pool)) => format!("the labels and taints of NodePool {}", pool.name()),
            _ => format!("spec.kubelet of {} {}", class.kind, class.name()),
        };
        Some(
            Suspicion::new(
                format!("Perhaps the kubelet exits on its settings: {whose}."),
                CONSOLE,
                "kubelet: failed to parse a flag or the configuration, unknown labels, an invalid taint",
            )
            .telling(differential.differs("kubelet").filter(|_| own).map(|(nearest, set)| set.shown(nearest)))
            .telling(template)
            .consistent(differential.nothing_joined().filter(|_| own))
            .consistent(differential.nothing_joined().filter(|_| own).map(|_| "the class sets the kubelet itself")),
        )
    },
};

/// Everything that all nodes share works, but the boot of this one had a temporary fault.
pub const GAVE_UP_ONCE: CauseCandidate = CauseCandidate {
    cause: "BootstrapFailed",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        if !differential.is_single(case) {
            return None;
        }
        let own_image = class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none());
        Some(
            Suspicion::new(
                "Perhaps the boot of this one instance gave up: nodeadm-run, containerd or a download was too slow, \
                 and nothing tries it again.",
                CONSOLE,
                "nodeadm-run or bootstrap.sh in error: timeout, connection refused by containerd, the sandbox (pause) \
                 image",
            )
            .telling(Some(SINGLE))
            .consistent(own_image.then_some("the image is not AWS's own, so what it starts may be slow")),
        )
    },
};

pub(super) const SINGLE: &str = "nodes with the same node class text, image and zone join";

pub const EMPTY_NODE_NAME: CauseCandidate = CauseCandidate {
    cause: "NodeNameEmptyAtBoot",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let single = differential.is_single(case).then_some(SINGLE)?;
        Some(
            Suspicion::new(
                "Perhaps EC2 had no private DNS name for the instance when the kubelet started, so its Node has no \
                 name.",
                CONSOLE,
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
        let single = differential.is_single(case).then_some(SINGLE);
        let spot = differential.split(case, "capacity type").filter(|split| split.value == "spot");
        Some(
            Suspicion::new(
                "Perhaps the instance has ended, or its hardware fails.",
                STATE,
                "a state other than running, and its reason",
            )
            .telling(single)
            .contrast(spot.as_ref(), |split| format!("no spot node has joined, {} nodes have", split.elsewhere)),
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
                format!(
                    "Perhaps EC2 may not decrypt the instance's volume with {named} (KMS), so it ends the instance at \
                     once."
                ),
                STATE,
                "terminated, Client.InternalError or Client.InvalidKMSKey.InvalidState",
            )
            .telling(
                differential.differs("volume key").filter(|_| key.is_some()).map(|(nearest, key)| key.shown(nearest)),
            )
            .consistent(key.and(differential.together()).map(|_| "the class names its own key for its volumes"))
            .consistent(differential.together()),
        )
    },
};
