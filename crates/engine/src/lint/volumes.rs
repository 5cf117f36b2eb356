//! Volumes of a node class that EC2 refuses, or that are not the ones meant.

use super::flaw::Flaw;
use crate::facts::volume_refusal::volume_refusal;
use crate::objects::{BlockDevice, NodeClass};

/// Mistakes in the volumes of an EC2NodeClass.
pub fn flaws(class: &NodeClass) -> Vec<Flaw> {
    let volumes = class.spec.block_device_mappings.iter().enumerate();
    let in_bytes = volumes.clone().filter_map(|(at, volume)| {
        let size = volume.ebs.as_ref()?.volume_size.as_deref()?;
        let holds_pods = class.data_volume().is_some_and(|own| std::ptr::eq(own, volume));
        // karpenter-provider-aws v1.14.1 pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml: a string with a unit
        let outcome = if holds_pods {
            "If the API server accepts it, Karpenter finds no instance type with room for a pod"
        } else {
            "If the API server accepts it, EC2 creates a volume of 1 GiB"
        };
        is_in_bytes(volume).then(|| Flaw {
            cause: "VolumeInBytes",
            message: format!(
                "EC2NodeClass {} has a volumeSize of {size} without a unit, which is {size} bytes. {outcome}.",
                class.name(),
            ),
            fix: format!("Write volumeSize: {size}Gi."),
            field: format!("spec.blockDeviceMappings.{at}.ebs.volumeSize"),
            fatal: holds_pods,
        })
    });
    let refused = volumes.filter(|(_, volume)| !is_in_bytes(volume)).filter_map(|(at, volume)| {
        let refusal = volume_refusal(class, volume)?;
        let device = volume.device_name.as_deref().unwrap_or("a volume");
        Some(Flaw {
            cause: "VolumeRefused",
            message: format!(
                "EC2NodeClass {} describes {device} with {}, which EC2 refuses: nothing is launched.",
                class.name(),
                refusal.what
            ),
            fix: refusal.fix,
            field: format!("spec.blockDeviceMappings.{at}.ebs.{}", refusal.field),
            fatal: refusal.sure,
        })
    });
    let misnamed = class.misnamed_volume().map(|(at, volume, own)| Flaw {
        cause: "VolumeOfAnotherFamily",
        message: format!(
            "EC2NodeClass {} configures {}, but {} keeps images and pods on {own}, which has only the size that the \
             image sets.",
            class.name(),
            volume.device_name.as_deref().unwrap_or_default(),
            class.family_name(),
        ),
        fix: format!("Write deviceName: {own}, or add that volume too."),
        field: format!("spec.blockDeviceMappings.{at}.deviceName"),
        fatal: false,
    });
    in_bytes.chain(refused).chain(misnamed).collect()
}

/// Whether its size is a number without a unit.
fn is_in_bytes(volume: &BlockDevice) -> bool {
    let size = volume.ebs.as_ref().and_then(|ebs| ebs.volume_size.as_deref()).unwrap_or_default();
    !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit())
}
