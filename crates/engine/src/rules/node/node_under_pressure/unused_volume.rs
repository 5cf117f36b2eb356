//! A volume that the node class describes and that the kubelet does not see: the image has its root on another device,
//! or does not grow its file system.

use crate::objects::{Node, NodeClass, quantity};
use crate::rules::prelude::*;
use crate::upstream::overhead::GIB;

pub(super) struct UnusedVolume<'w> {
    class: &'w NodeClass,
    /// The image of the Node.
    image: Option<&'w str>,
    device: &'w str,
    size: &'w str,
    allocatable: &'w str,
    /// In GiB.
    seen: f64,
}

impl<'w> UnusedVolume<'w> {
    /// The kubelet gives pods nine tenths of the file system, and reservations take little more.
    const LEAST: f64 = 0.5;

    pub(super) fn of(class: &'w NodeClass, node: &'w Node, image: Option<&'w str>) -> Option<Self> {
        // Instance store takes the place of the volume.
        if class.spec.instance_store_policy.is_some() {
            return None;
        }
        let volume = class.data_volume()?;
        let (device, size) = (volume.device_name.as_deref()?, volume.ebs.as_ref()?.volume_size.as_deref()?);
        let allocatable = node.status.allocatable.get("ephemeral-storage")?;
        let (seen, whole) = (quantity::parse(allocatable)? / GIB, quantity::parse(size)? / GIB);
        (seen < whole * Self::LEAST).then_some(Self { class, image, device, size, allocatable, seen })
    }

    pub(super) fn said(&self) -> String {
        let Self { class, device, size, seen, .. } = self;
        format!(
            "{} {} describes a volume of {size} at {device}, but the kubelet has only {seen:.1} GiB for images and \
             pods: the image has its root on another device, or does not grow its file system. ",
            class.kind,
            class.name()
        )
    }

    pub(super) fn onto(&self, finding: Finding, node: &Node) -> Finding {
        let Self { class, image, allocatable, .. } = self;
        let image = image.unwrap_or("AMI");
        finding
            .with(Evidence::new(
                format!("Node/{}", node.name()),
                "status.allocatable.ephemeral-storage",
                (*allocatable).to_owned(),
                "what the kubelet's file system leaves for images and pods",
            ))
            .blaming(Blame::class(class).field("spec.blockDeviceMappings"))
            .fix(
                "Set deviceName to the root device of the image. If it is that device already, let the image grow its \
                 file system at boot. Only new nodes get it.",
            )
            .inspect(
                "See the root device of the image",
                format!("aws ec2 describe-images --image-ids {image} --query Images[].RootDeviceName"),
            )
    }
}
