//! Whether EC2 can launch the machine from its image at all, by EC2's description of the image and of the instance
//! types.

use crate::case::Case;
use crate::explain::launch_error;
use crate::facts::machine_image;
use crate::objects::intern::Interned;
use crate::objects::{Ami, Image, InstanceType, NodeClass};
use crate::upstream::karpenter::{Karpenter, Version};
use readers::userdata::Family;

/// Why EC2 launches no machine from the image.
pub(crate) enum Misfit<'w> {
    /// The class describes a volume that is smaller than its snapshot.
    Volume(SmallVolume<'w>),
    /// The image needs something that none of the allowed instance types has.
    Types { wants: Want, types: Vec<&'w str> },
}

pub(crate) struct SmallVolume<'w> {
    /// Its place in the class; Karpenter describes it by itself where there is none.
    pub place: Option<usize>,
    pub device: &'w str,
    pub gib: u64,
    pub snapshot: u64,
}

/// An image's requirements for an instance type, which EC2 checks before it launches anything.
/// Source: Amazon EC2 user guide, "Requirements for changing the instance type", "Boot modes", "Enhanced networking".
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Want {
    Architecture(String),
    /// The type has no other network than ENA, and the image is not registered for it.
    OtherNetwork,
    BootMode(String),
}

/// The image that the machine would be launched from, if the launch was refused and the refusal does not say exactly
/// why. If several images match, nodewhy cannot know which one it was.
pub(crate) fn image_in_question<'w>(case: &Case<'w>) -> Option<(&'w str, &'w NodeClass)> {
    let (claim, class) = (case.claim?, case.class().filter(|class| class.is_ec2())?);
    let launched = claim.condition("Launched").filter(|c| !c.is_true())?;
    // Reasons of a launch that was not tried yet: core pkg/controllers/nodeclaim/lifecycle/launch.go (v1.14.3).
    let untried = ["", "Launched", "AwaitingReconciliation", "NodeClassReadinessUnknown"];
    let is_exact = |text: &str| launch_error::named(text).is_some_and(|error| error.exact);
    if untried.contains(&launched.reason.as_str()) || is_exact(&launched.reason) || is_exact(&launched.message) {
        return None;
    }
    let arch = claim.fixed("kubernetes.io/arch");
    let is_one = class.status.amis.iter().filter(|ami| machine_image::runs(ami, arch)).count() <= 1;
    machine_image::of(case).filter(|_| is_one).map(|id| (id, class))
}

/// The types that nodewhy asks EC2 about: all that the NodeClaim allows, if the image exists and its volumes fit.
pub(crate) fn types_in_question<'w>(case: &Case<'w>) -> Vec<&'w str> {
    let Some((id, class)) = image_in_question(case) else { return Vec::new() };
    let known = case.cluster.aws().image(id).known().filter(|(image, _)| image.state == "available");
    let fits = |image: &Image| small_volume(class, image, case.karpenter()).is_none();
    known.filter(|(image, _)| fits(image)).map_or_else(Vec::new, |_| allowed(case))
}

fn allowed<'w>(case: &Case<'w>) -> Vec<&'w str> {
    let requirements = case.claim.map(|claim| &claim.spec.requirements).into_iter().flatten();
    let types = requirements.filter(|r| r.key == "node.kubernetes.io/instance-type" && r.operator == "In");
    types.flat_map(|r| r.values.iter()).map(Interned::as_str).collect()
}

/// `None` where nothing is known to be wrong: a single type that fits, or of which EC2 told nothing, is enough.
pub(crate) fn misfit<'w>(case: &Case<'w>, class: &'w NodeClass, image: &'w Image) -> Option<Misfit<'w>> {
    if let Some(small) = small_volume(class, image, case.karpenter()) {
        return Some(Misfit::Volume(small));
    }
    let types = allowed(case);
    let wants = types.iter().map(|name| wants(image, case.cluster.aws().instance_type(name).known()?.0));
    let wants: Option<Vec<Want>> = wants.collect();
    let first = wants?.into_iter().next()?;
    Some(Misfit::Types { wants: first, types })
}

/// The image's requirement that the type does not meet. nodewhy assumes that unknown values fit.
fn wants(image: &Image, type_: &InstanceType) -> Option<Want> {
    let lacks = |have: &[String], wanted: &str| !have.is_empty() && !have.iter().any(|have| have == wanted);
    let architecture = image.architecture.clone().filter(|arch| lacks(&type_.architectures, arch));
    let boot_mode = || {
        let only = |mode: &&String| matches!(mode.as_str(), "uefi" | "legacy-bios");
        image.boot_mode.as_ref().filter(only).filter(|mode| lacks(&type_.boot_modes, mode)).cloned()
    };
    let other_network = || (type_.ena == "required" && image.ena == Some(false)).then_some(Want::OtherNetwork);
    architecture.map(Want::Architecture).or_else(|| boot_mode().map(Want::BootMode)).or_else(other_network)
}

/// The first volume that the class describes smaller than the image's snapshot for that device.
fn small_volume<'w>(class: &'w NodeClass, image: &Image, karpenter: Option<&Karpenter>) -> Option<SmallVolume<'w>> {
    described(class, karpenter).into_iter().find_map(|(place, device, gib)| {
        let of_image = image.volumes.iter().find(|volume| volume.device == device)?;
        let snapshot = of_image.gib.filter(|snapshot| gib < *snapshot)?;
        Some(SmallVolume { place, device, gib, snapshot })
    })
}

/// The message of `lint` about a volume before a machine is launched with it.
pub(crate) fn preflight(image: &Image, class: &NodeClass, ami: &Ami, karpenter: Option<&Karpenter>) -> Option<String> {
    let SmallVolume { device, gib, snapshot, .. } = small_volume(class, image, karpenter)?;
    Some(format!(
        "{device} has {gib} GiB, but the snapshot behind it in the image {} ({}) has {snapshot} GiB. EC2 launches \
         nothing with a volume smaller than its snapshot.",
        ami.id, ami.name
    ))
}

/// The first version that gives Bottlerocket's system volume 6 GiB, and not 4, as large as newer images need it.
/// Source: karpenter-provider-aws pkg/providers/amifamily/bottlerocket.go `DefaultBlockDeviceMappings` (v1.14.1,
/// v1.15.0).
const SYSTEM_OF_6_GIB: Version = Version(1, 15, 0);

/// The sizes that Karpenter asks for: those of the class, else its own for the family.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/amifamily/{resolver,bottlerocket,windows,custom}.go
/// `DefaultEBS`, `DefaultBlockDeviceMappings`.
fn described<'w>(class: &'w NodeClass, karpenter: Option<&Karpenter>) -> Vec<(Option<usize>, &'w str, u64)> {
    let own = &class.spec.block_device_mappings;
    if own.is_empty() {
        let default: &[(&str, u64)] = match class.family() {
            Some(Family::Al2 | Family::Al2023) => &[("/dev/xvda", 20)],
            Some(Family::Bottlerocket) if karpenter.is_some_and(|k| k.version < SYSTEM_OF_6_GIB) => {
                &[("/dev/xvda", 4), ("/dev/xvdb", 20)]
            }
            Some(Family::Bottlerocket) => &[("/dev/xvda", 6), ("/dev/xvdb", 20)],
            Some(Family::Windows) => &[("/dev/sda1", 50)],
            Some(Family::Custom) | None => &[],
        };
        return default.iter().map(|(device, gib)| (None, *device, *gib)).collect();
    }
    let of_image = own.iter().enumerate().filter(|(_, v)| v.ebs.as_ref().is_some_and(|ebs| ebs.snapshot_id.is_none()));
    of_image.filter_map(|(place, v)| Some((Some(place), v.device_name.as_deref()?, v.gib()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_fits_unless_ec2_says_otherwise() {
        let image = |arch: &str, boot: Option<&str>, ena| Image {
            architecture: Some(arch.to_owned()),
            boot_mode: boot.map(str::to_owned),
            ena,
            ..Image::default()
        };
        let type_ = |arch: &[&str], modes: &[&str], ena: &str| InstanceType {
            architectures: arch.iter().map(|a| (*a).to_owned()).collect(),
            boot_modes: modes.iter().map(|m| (*m).to_owned()).collect(),
            ena: ena.to_owned(),
        };
        let m4 = type_(&["x86_64"], &["legacy-bios"], "unsupported");
        let m5 = type_(&["x86_64"], &["legacy-bios", "uefi"], "required");
        let m7g = type_(&["arm64"], &["uefi"], "required");
        let uefi = || Some(Want::BootMode("uefi".to_owned()));
        for (image, type_, wanted) in [
            (image("x86_64", Some("uefi"), Some(true)), &m4, uefi()),
            (image("x86_64", Some("uefi-preferred"), Some(true)), &m4, None),
            (image("x86_64", None, Some(true)), &m4, None),
            (image("x86_64", Some("uefi"), Some(true)), &m5, None),
            (image("x86_64", Some("legacy-bios"), Some(false)), &m5, Some(Want::OtherNetwork)),
            (image("x86_64", Some("legacy-bios"), None), &m5, None),
            (image("x86_64", Some("uefi"), Some(true)), &m7g, Some(Want::Architecture("x86_64".to_owned()))),
            (image("arm64", Some("uefi"), Some(true)), &m7g, None),
            (image("arm64", Some("uefi"), Some(true)), &InstanceType::default(), None),
            (Image::default(), &m5, None),
        ] {
            assert_eq!(wants(&image, type_), wanted, "{image:?} {type_:?}");
        }
    }
}
