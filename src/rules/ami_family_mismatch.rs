//! The node class's amiFamily writes user data that the selected image does not understand.

use super::Rule;
use crate::api::{Blame, Confidence, Risk, Stage};
use crate::case::Case;
use crate::finding::{Finding, Opinion, saw};
use crate::foreign::NodeClaim;
use crate::input::Input;
use crate::karpenter::CLASS_HASH;
use crate::userdata::Family;

pub static RULE: Rule = Rule {
    cause: "AmiFamilyMismatch",
    summary: "The image is of another operating system than the amiFamily whose user data Karpenter writes",
    stages: &[Stage::Join],
    reads: &[Input::NodeClasses],
    versions: "all",
    page: include_str!("../../docs/causes/AmiFamilyMismatch.md"),
    check,
};

/// The operating system that an image's name tells, where AWS or the vendor named it.
///
/// Sources: amazon-eks-ami releases (amazon-eks-node-1.31-v…, amazon-eks-gpu-node-…, amazon-eks-arm64-node-…,
/// amazon-eks-node-al2023-…), Bottlerocket (bottlerocket-aws-k8s-…), Windows (Windows_Server-…-EKS_Optimized-…).
fn family_of_image(name: &str) -> Option<Family> {
    let name = name.rsplit('/').next().unwrap_or(name);
    if name.starts_with("amazon-eks-node-al2023-") {
        Some(Family::Al2023)
    } else if ["amazon-eks-node-", "amazon-eks-gpu-node-", "amazon-eks-arm64-node-"]
        .iter()
        .any(|p| name.strip_prefix(p).is_some_and(|rest| rest.starts_with("1.")))
    {
        Some(Family::Al2)
    } else if name.starts_with("bottlerocket-aws-") {
        Some(Family::Bottlerocket)
    } else if name.starts_with("Windows_Server-") {
        Some(Family::Windows)
    } else {
        None
    }
}

/// What a machine of this family runs at boot.
const fn reads(family: Family) -> &'static str {
    match family {
        Family::Al2 => "a shell script that calls /etc/eks/bootstrap.sh",
        Family::Al2023 => "a NodeConfig for nodeadm",
        Family::Bottlerocket => "settings in TOML",
        Family::Windows => "a PowerShell script",
        Family::Custom => "what the user wrote",
    }
}

const fn system(family: Family) -> &'static str {
    match family {
        Family::Al2 => "Amazon Linux 2",
        Family::Al2023 => "Amazon Linux 2023",
        Family::Bottlerocket => "Bottlerocket",
        Family::Windows => "Windows",
        Family::Custom => "custom",
    }
}

fn check(case: &Case) -> Opinion {
    let (Some(claim), Some(class)) = (case.claim, case.class()) else { return Opinion::Silent };
    let Some(ami) = class.status.amis.iter().find(|a| a.id == claim.status.image_id) else { return Opinion::Silent };
    let (Some(family), Some(image)) = (class.family(), family_of_image(&ami.name)) else { return Opinion::Silent };
    if family == Family::Custom {
        return Opinion::Silent;
    }
    if family == image {
        return Opinion::RuledOut(format!("the image {} is a {} image, as the class says", ami.name, system(image)));
    }
    // A name is only a name: a machine that joined with this image and this class knows better.
    let same_class = |s: &NodeClaim| s.metadata.annotation(CLASS_HASH) == claim.metadata.annotation(CLASS_HASH);
    if let Some(joined) = case.joined_siblings().find(|s| s.status.image_id == ami.id && same_class(s)) {
        return Opinion::RuledOut(format!("NodeClaim {} has joined with the image {}", joined.name(), ami.name));
    }
    let written = class.family_name();
    let summary = format!(
        "{} {} says {written}, so Karpenter writes {}, but the image {} is {} and does not understand it.",
        class.kind,
        class.name(),
        reads(family),
        ami.name,
        system(image)
    );
    let object = format!("{}/{}", class.kind, class.name());
    Finding::new(
        Confidence::Certain,
        summary,
        saw(&object, "spec.amiFamily", written, format!("user data is written for {}", system(family))),
    )
    .with(saw(
        &object,
        "status.amis",
        format!("{} {}", ami.id, ami.name),
        format!("by its name this is a {} image, which expects {}", system(image), reads(image)),
    ))
    .with(saw(case.subject(), "status.imageID", &claim.status.image_id, "the machine runs this image"))
    .blaming(Blame::object(&class.api_version, &class.kind, class.name()).field("spec.amiFamily"))
    .fix(format!("Select an image of the family {written}, or set amiFamily to the image's ({}).", system(image)))
    .step(
        Risk::Mutating,
        "Select by alias, which fits image and family together",
        Some(format!("kubectl edit ec2nodeclass {}", class.name())),
    )
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_published_names_only() {
        assert_eq!(family_of_image("amazon-eks-node-1.31-v20250123"), Some(Family::Al2));
        assert_eq!(family_of_image("amazon-eks-gpu-node-1.30-v20240928"), Some(Family::Al2));
        assert_eq!(family_of_image("amazon-eks-node-al2023-x86_64-standard-1.31-v20250123"), Some(Family::Al2023));
        assert_eq!(family_of_image("bottlerocket-aws-k8s-1.31-x86_64-v1.32.0-cacc4ce9"), Some(Family::Bottlerocket));
        assert_eq!(family_of_image("Windows_Server-2022-English-Core-EKS_Optimized-1.31-2025.01.15"), Some(Family::Windows));
        assert_eq!(family_of_image("platform-golden-al2-1.29"), None);
        assert_eq!(family_of_image("amazon-eks-node-hardened-2026-01"), None);
    }
}
