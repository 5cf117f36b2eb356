//! The instance ended at once: its volume is encrypted with a key that EC2 could not use.

use crate::cluster_state::aws::AwsAnswer;
use crate::facts::image_selection::selected_by;
use crate::facts::instance_state::{Encryption, Ended, encryption, ended};
use crate::facts::key_users;
use crate::facts::key_users::LeftOut;
use crate::objects::{KmsKey, NodeClass};
use crate::rules::prelude::*;
use chrono::{DateTime, Utc};

rule! {
    cause: VolumeKeyRefused,
    summary: "The instance ended at once because the KMS key of its volume cannot be used",
    stages: [Launch, Join],
    reads: [NodeClasses, ServiceAccounts, AwsObservations],
    versions: "all; seen only if nodewhy may ask EC2 (--aws)",
}

/// Amazon EC2 user guide, "Instance terminates immediately": InternalError, "Client error on launch", usually means
/// that the root volume is encrypted and the key may not be used. The InvalidKMSKey codes say so directly.
fn check(case: &Case) -> Option<Opinion> {
    let ended = ended(case)?;
    let encrypted = encryption(case);
    let named = ended.code.starts_with("Client.InvalidKMSKey");
    let confidence = match (named, encrypted) {
        (true, _) => Confidence::Certain,
        (false, Some(_)) if ended.code == "Client.InternalError" => Confidence::Likely,
        (false, _) => return None,
    };
    let key = match encrypted {
        Some(Encryption::Class(key)) if !key.is_empty() => Some(key),
        _ => None,
    };
    let state = key.map_or(KeyState::Unknown, |key| KeyState::of(case, key));
    // A key that works now may have been fixed since.
    let confidence = if state.refuses() { Confidence::Certain } else { confidence };
    if let Some(left_out) = key_users::left_out(case).filter(|_| !state.refuses()) {
        return of_users(&ended, confidence, &left_out).into();
    }
    let with = match encrypted {
        Some(Encryption::Image(image)) => format!(" of a snapshot in its image {image}"),
        _ => key.map_or_else(String::new, |key| format!(" {key} of its volume")),
    };
    let class = case.class();
    let message = ended.instance.message.as_deref().unwrap_or_default();
    let mut finding = Finding::new(
        confidence,
        format!(
            "EC2 ended {} at its launch ({}): the KMS key{with} cannot be used{}.",
            ended.id,
            ended.code,
            state.clause()
        ),
        Evidence::new(
            format!("ec2:DescribeInstances {}", ended.id),
            "StateReason",
            format!("{}: {message}", ended.code),
            "an instance ends at once if EC2 cannot decrypt its volume, and Kubernetes does not learn about it",
        )
        .told_by_aws(ended.seen),
    )
    .fix(state.fix());
    finding.evidence.extend(key.and_then(|key| state.evidence(key)));
    if let (KeyState::Is(state, _), Some(key)) = (&state, key) {
        let (text, command) = match state.state.as_str() {
            "Disabled" => ("Enable the key", format!("aws kms enable-key --key-id {key}")),
            "PendingDeletion" => (
                "Keep the key, and enable it",
                format!("aws kms cancel-key-deletion --key-id {key} && aws kms enable-key --key-id {key}"),
            ),
            _ => ("", String::new()),
        };
        if !text.is_empty() {
            finding = finding.change(text, command);
        }
    }
    let finding = finding.inspect(
        "See the key's state and policy",
        format!(
            "aws kms describe-key --key-id {0} && aws kms get-key-policy --key-id {0} --policy-name default --output \
             text",
            key.unwrap_or("KEY")
        ),
    );
    if let (Some(Encryption::Image(image)), Some(class)) = (encrypted, class) {
        return of_image(case, finding, class, image).into();
    }
    let Some(class) = class.filter(|_| encrypted.is_some()) else { return finding.into() };
    let object = format!("{}/{}", class.kind, class.name());
    finding
        .with(Evidence::new(
            object,
            "spec.blockDeviceMappings",
            key.map_or_else(|| "encrypted".to_owned(), |key| format!("kmsKeyID {key}")),
            "the volumes of these instances are encrypted",
        ))
        .blaming(Blame::class(class).field("spec.blockDeviceMappings"))
        .into()
}

/// The key works, but its policy and grants do not include the caller that launches.
fn of_users(ended: &Ended, confidence: Confidence, left_out: &LeftOut) -> Finding {
    let LeftOut { key, who, named, is_sure, .. } = left_out;
    let deleted = if named.iter().any(|id| id.starts_with("AROA") || id.starts_with("AIDA")) {
        ". An id instead of an ARN belongs to a deleted role or user"
    } else {
        ""
    };
    Finding::new(
        if *is_sure { Confidence::Certain } else { confidence },
        format!(
            "EC2 ended {} at its launch ({}): the KMS key {key} of its volume is enabled, but neither its policy nor a \
             grant names {who}.",
            ended.id, ended.code
        ),
        Evidence::new(
            format!("ec2:DescribeInstances {}", ended.id),
            "StateReason",
            ended.code,
            "an instance ends at once if EC2 cannot decrypt its volume, and Kubernetes does not learn about it",
        )
        .told_by_aws(ended.seen),
    )
    .with(
        Evidence::new(
            format!("kms:GetKeyPolicy {key}"),
            "Principal",
            named.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", "),
            format!("the principals that its policy and grants name{deleted}"),
        )
        .told_by_aws(left_out.at),
    )
    .blaming(Blame::object("", "KMSKey", key))
    .fix(format!(
        "Let {who} use the key: allow kms:CreateGrant, kms:Decrypt, kms:DescribeKey, \
         kms:GenerateDataKeyWithoutPlaintext and kms:ReEncrypt* in its key policy, or with a grant."
    ))
    .inspect(
        "See its policy and grants",
        format!(
            "aws kms get-key-policy --key-id {key} --policy-name default --output text && aws kms list-grants --key-id \
             {key}"
        ),
    )
}

/// The class encrypts nothing, but a snapshot of the image is encrypted.
/// Source: Amazon EC2 user guide, "Share an AMI": the caller that launches an encrypted image of another account needs
/// its key, too.
fn of_image(case: &Case, finding: Finding, class: &NodeClass, image: &str) -> Finding {
    let at = case.cluster.aws().image(image).known().and_then(|(_, at)| at);
    let term = selected_by(class, image, None).map_or(String::new(), |(n, _)| format!("[{n}]"));
    finding
        .with(
            Evidence::new(
                format!("ec2:DescribeImages {image}"),
                "BlockDeviceMappings",
                "Encrypted: true",
                "EC2 decrypts the snapshot for the instance's volume, although the node class itself encrypts nothing",
            )
            .told_by_aws(at),
        )
        .inspect(
            "See which account owns the image, and which snapshots are encrypted",
            format!(
                "aws ec2 describe-images --image-ids {image} --query \
                 'Images[].[OwnerId,BlockDeviceMappings[].Ebs.[SnapshotId,Encrypted]]'"
            ),
        )
        .fix(
            "Let Karpenter's role use the key of the image's snapshot, and AWSServiceRoleForEC2Spot too if the \
             instance is Spot. Or select an image that is copied with a key of this account.",
        )
        .blaming(Blame::class(class).field(format!("spec.amiSelectorTerms{term}")))
}

/// KMS's report about the key.
enum KeyState<'w> {
    /// nodewhy did not ask, or got no answer.
    Unknown,
    /// KMS has no such key in this region.
    Absent(Option<DateTime<Utc>>),
    Is(&'w KmsKey, Option<DateTime<Utc>>),
}

impl<'w> KeyState<'w> {
    fn of(case: &Case<'w>, key: &str) -> Self {
        match case.cluster.aws().key(key) {
            AwsAnswer::Found(key, at) => Self::Is(key, at),
            // EC2 returned the instance, so the region is the right one.
            AwsAnswer::Absent(at) => Self::Absent(at),
            AwsAnswer::NotAsked | AwsAnswer::Refused(_) => Self::Unknown,
        }
    }

    /// Whether no caller can use the key, whatever its policy says.
    /// Source: AWS KMS developer guide, "Key states of AWS KMS keys".
    fn refuses(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Absent(_) => true,
            Self::Is(key, _) => {
                matches!(key.state.as_str(), "Disabled" | "PendingDeletion" | "PendingImport" | "Unavailable")
            }
        }
    }

    fn clause(&self) -> String {
        match self {
            Self::Absent(_) => ", because KMS has no such key in this region".to_owned(),
            Self::Is(key, _) if self.refuses() => format!(", because it is {}", key.state),
            Self::Is(key, _) if key.state == "Enabled" => ", although it is enabled".to_owned(),
            Self::Unknown | Self::Is(..) => String::new(),
        }
    }

    fn fix(&self) -> &'static str {
        match self {
            Self::Is(key, _) if key.state == "Disabled" => "Enable the key.",
            Self::Is(key, _) if key.state == "PendingDeletion" => {
                "Cancel the deletion of the key and enable it: after the deletion, nothing that it encrypts can be \
                 read. Or name another key in kmsKeyID."
            }
            Self::Is(_, _) if self.refuses() => {
                "Import the key's material, or reconnect its key store. Or name another key in kmsKeyID."
            }
            Self::Absent(_) => "Correct kmsKeyID: it names no key of this region.",
            Self::Is(..) => {
                "Let EC2 use the key: add a key policy or a grant for Karpenter's role, and for \
                 AWSServiceRoleForEC2Spot if the instance is Spot."
            }
            Self::Unknown => {
                "Let EC2 use the key: add a key policy or a grant for Karpenter's role, and for \
                 AWSServiceRoleForEC2Spot if the instance is Spot. Enable the key if it is disabled. Correct kmsKeyID \
                 if it names another key."
            }
        }
    }

    fn evidence(&self, key: &str) -> Option<Evidence> {
        let (field, observed, at) = match self {
            Self::Unknown => return None,
            Self::Absent(at) => ("KeyId", "KMS does not know it".to_owned(), *at),
            Self::Is(key, at) => {
                let deletion = key.deletion.map_or_else(String::new, |day| format!(" on {}", day.date_naive()));
                ("KeyState", format!("{}{deletion}", key.state), *at)
            }
        };
        let because =
            if self.refuses() { "a key in this state cannot decrypt" } else { "its policy and grants remain" };
        Some(Evidence::new(format!("kms:DescribeKey {key}"), field, observed, because).told_by_aws(at))
    }
}
