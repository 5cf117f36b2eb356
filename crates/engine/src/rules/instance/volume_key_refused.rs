//! The instance ended at once: its volume is encrypted with a key that EC2 could not use.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::cluster_state::aws::Told;
use crate::objects::KmsKey;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::instance_state::{encryption, ended};
use chrono::{DateTime, Utc};

pub static RULE: Rule = Rule {
    cause: "VolumeKeyRefused",
    summary: "The instance ended at once because the KMS key of its volume cannot be used",
    stages: &[Stage::Launch, Stage::Join],
    reads: &[Input::NodeClasses, Input::AwsObservations],
    lint: false,
    versions: "all; seen only where nodewhy may ask EC2 (--aws)",
    page: include_str!("../../../pages/VolumeKeyRefused.md"),
    check,
};

/// Amazon EC2 user guide, "Instance terminates immediately": InternalError, "Client error on launch", typically means
/// that the root volume is encrypted and the key may not be used. The InvalidKMSKey codes say it outright.
fn check(case: &Case) -> Opinion {
    let Some(ended) = ended(case) else { return Opinion::Silent };
    let encrypted = encryption(case);
    let named = ended.code.starts_with("Client.InvalidKMSKey");
    let confidence = match (named, encrypted) {
        (true, _) => Confidence::Certain,
        (false, Some(_)) if ended.code == "Client.InternalError" => Confidence::Likely,
        (false, _) => return Opinion::Silent,
    };
    let key = encrypted.filter(|key| !key.is_empty());
    let state = key.map_or(KeyState::Unknown, |key| KeyState::of(case, key));
    // A key that works by now may have been mended since.
    let confidence = if state.refuses() { Confidence::Certain } else { confidence };
    let with = key.map_or_else(String::new, |key| format!(" {key}"));
    let class = case.class();
    let message = ended.instance.message.as_deref().unwrap_or_default();
    let mut finding = Finding::new(
        confidence,
        format!(
            "EC2 ended {} at its launch ({}): the KMS key{with} of its volume cannot be used{}.",
            ended.id,
            ended.code,
            state.clause()
        ),
        Evidence::new(
            format!("ec2:DescribeInstances {}", ended.id),
            "StateReason",
            format!("{}: {message}", ended.code),
            "an instance whose volume cannot be decrypted ends at once; Kubernetes is not told",
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
            finding = finding.step(Risk::Mutating, text, Some(command));
        }
    }
    let finding = finding.step(
        Risk::Inspect,
        "See the key's state and policy",
        Some(format!(
            "aws kms describe-key --key-id {0} && aws kms get-key-policy --key-id {0} --policy-name default --output text",
            key.unwrap_or("KEY")
        )),
    );
    let Some(class) = class.filter(|_| encrypted.is_some()) else { return finding.into() };
    let object = format!("{}/{}", class.kind, class.name());
    finding
        .with(Evidence::new(
            object,
            "spec.blockDeviceMappings",
            key.map_or_else(|| "encrypted".to_owned(), |key| format!("kmsKeyID {key}")),
            "the machines' volumes are encrypted",
        ))
        .blaming(Blame::class(class).field("spec.blockDeviceMappings"))
        .into()
}

/// What KMS says of the key.
enum KeyState<'w> {
    /// Nobody asked, or there is no answer.
    Unknown,
    /// KMS has no such key in this region.
    Absent(Option<DateTime<Utc>>),
    Is(&'w KmsKey, Option<DateTime<Utc>>),
}

impl<'w> KeyState<'w> {
    fn of(case: &Case<'w>, key: &str) -> Self {
        match case.cluster.aws().key(key) {
            Told::Is(key, at) => Self::Is(key, at),
            // EC2 has shown the instance: the region is the right one.
            Told::Absent(at) => Self::Absent(at),
            Told::Nothing | Told::Refused(_) => Self::Unknown,
        }
    }

    /// Whether nobody can use the key, whatever its policy says.
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
            Self::Absent(_) => ", for KMS has no such key in this region".to_owned(),
            Self::Is(key, _) if self.refuses() => format!(", for it is {}", key.state),
            Self::Is(key, _) if key.state == "Enabled" => ", though it is enabled".to_owned(),
            Self::Unknown | Self::Is(..) => String::new(),
        }
    }

    fn fix(&self) -> &'static str {
        match self {
            Self::Is(key, _) if key.state == "Disabled" => "Enable the key.",
            Self::Is(key, _) if key.state == "PendingDeletion" => {
                "Cancel the deletion of the key and enable it: once it is deleted, nothing that it encrypts can be read. Or name another key in kmsKeyID."
            }
            Self::Is(_, _) if self.refuses() => {
                "Give the key its material, or its key store back; or name another key in kmsKeyID."
            }
            Self::Absent(_) => "Correct kmsKeyID: it names no key of this region.",
            Self::Is(..) => {
                "Let EC2 use the key: a key policy or a grant for Karpenter's role, and for AWSServiceRoleForEC2Spot where the instance is Spot."
            }
            Self::Unknown => {
                "Let EC2 use the key: a key policy or a grant for Karpenter's role, and for AWSServiceRoleForEC2Spot where the instance is Spot; enable the key where it is disabled; correct kmsKeyID where it names another."
            }
        }
    }

    fn evidence(&self, key: &str) -> Option<Evidence> {
        let (field, observed, at) = match self {
            Self::Unknown => return None,
            Self::Absent(at) => ("KeyId", "not known to KMS".to_owned(), *at),
            Self::Is(key, at) => {
                let deletion = key.deletion.map_or_else(String::new, |day| format!(" on {}", day.date_naive()));
                ("KeyState", format!("{}{deletion}", key.state), *at)
            }
        };
        let because =
            if self.refuses() { "a key in this state decrypts nothing" } else { "its policy and grants remain" };
        Some(Evidence::new(format!("kms:DescribeKey {key}"), field, observed, because).told_by_aws(at))
    }
}
