//! Volumes of a node class that EC2 refuses, or that are not the ones meant.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use crate::rules::shared::volume_refusal::volume_refusal;

/// What is wrong with the volumes of an EC2NodeClass.
pub fn flaws(class: &NodeClass) -> Vec<Flaw> {
    let volumes = class.spec.block_device_mappings.iter().enumerate();
    let refused = volumes.filter_map(|(at, volume)| {
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
            "EC2NodeClass {} describes {}, but on {} images and pods live on {own}, which keeps the size that the image has.",
            class.name(),
            volume.device_name.as_deref().unwrap_or_default(),
            class.family_name(),
        ),
        fix: format!("Write deviceName: {own}, or describe that volume as well."),
        field: format!("spec.blockDeviceMappings.{at}.deviceName"),
        fatal: false,
    });
    refused.chain(misnamed).collect()
}
