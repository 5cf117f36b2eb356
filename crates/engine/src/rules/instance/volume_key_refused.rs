//! The instance ended at once: its volume is encrypted with a key that EC2 could not use.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::instance_state::{encryption, ended};

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
    let with = key.map_or_else(String::new, |key| format!(" {key}"));
    let class = case.class();
    let message = ended.instance.message.as_deref().unwrap_or_default();
    let finding = Finding::new(
        confidence,
        format!("EC2 ended {} at its launch ({}): the KMS key{with} of its volume cannot be used.", ended.id, ended.code),
        Evidence::new(format!("ec2:DescribeInstances {}", ended.id), "StateReason", format!("{}: {message}", ended.code), "an instance whose volume cannot be decrypted ends at once; Kubernetes is not told")
            .told_by_aws(ended.seen),
    )
    .fix("Let EC2 use the key: a key policy or a grant for Karpenter's role, and for AWSServiceRoleForEC2Spot where the instance is Spot; enable the key where it is disabled; correct kmsKeyID where it names another.")
    .step(Risk::Inspect, "See the key's state and policy", Some(format!("aws kms describe-key --key-id {0} && aws kms get-key-policy --key-id {0} --policy-name default --output text", key.unwrap_or("KEY"))));
    let Some(class) = class.filter(|_| encrypted.is_some()) else { return finding.into() };
    let object = format!("{}/{}", class.kind, class.name());
    finding
        .with(Evidence::new(
            object,
            "spec.blockDeviceMappings",
            key.map_or_else(|| "encrypted".to_owned(), |key| format!("kmsKeyID {key}")),
            "the machines' volumes are encrypted",
        ))
        .blaming(Blame::object(&class.api_version, &class.kind, class.name()).field("spec.blockDeviceMappings"))
        .into()
}
