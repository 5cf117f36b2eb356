//! The machine does not start with its image, or on its hardware.

use super::command::CONSOLE;
use super::{CauseCandidate, Suspicion};
use crate::api::Stage;
use crate::facts::machine_image;

pub const IMAGE: CauseCandidate = CauseCandidate {
    cause: "ImageNeverJoins",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let class = case.class()?;
        let id = machine_image::of(case)?;
        let ami = class.status.amis.iter().find(|ami| ami.id == id);
        let name = ami.map(|ami| ami.name.as_str()).filter(|name| !name.is_empty()).unwrap_or(id);
        let split = differential.split(case, "image");
        // AWS's own images are seldom at fault, but other images may be.
        let chosen = !class.is_auto_mode() && class.spec.ami_selector_terms.iter().all(|term| term.alias.is_none());
        let own = chosen && differential.nothing_joined().is_some();
        let shown = if name == id { id.to_owned() } else { format!("{name} ({id})") };
        Some(
            Suspicion::new(
                format!(
                    "Perhaps the image (AMI) {shown} does not boot into a working kubelet: its unit, its flags or its \
                     bootstrap."
                ),
                CONSOLE,
                "kubelet: unknown flag, a failed unit, nodeadm or bootstrap.sh in error, a kernel panic",
            )
            .telling(split.map(|split| {
                let other = class.status.amis.iter().find(|ami| ami.id == split.elsewhere);
                let other = other.map_or(split.elsewhere.as_str(), |ami| ami.name.as_str());
                format!("no node with this image has joined, nodes with {other} have")
            }))
            .consistent(own.then_some("the class selects its image without an alias of AWS's own images"))
            .consistent(differential.nothing_joined().filter(|_| own)),
        )
    },
};

pub const INSTANCE_TYPE: CauseCandidate = CauseCandidate {
    cause: "InstanceTypeNeverJoins",
    stages: &[Stage::Join],
    behind: &[],
    weigh: |case, differential| {
        let (what, split) = ["architecture", "instance family", "instance type"]
            .into_iter()
            .find_map(|what| Some((what, differential.split(case, what)?)))?;
        Some(
            Suspicion::new(
                format!(
                    "Perhaps instances of {what} {} do not start with this image: a driver, a boot mode or memory is \
                     missing.",
                    split.value
                ),
                CONSOLE,
                "where the boot stops: kernel, initramfs, drivers, out of memory",
            )
            .contrast(Some(&split), |split| {
                format!("no node of {what} {} has joined, nodes of {} have", split.value, split.elsewhere)
            }),
        )
    },
};
