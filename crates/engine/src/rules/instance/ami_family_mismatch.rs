//! The node class's amiFamily writes user data that the selected image does not understand.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use readers::userdata::Family;
use readers::userdata::image_name;

pub static RULE: Rule = Rule {
    cause: "AmiFamilyMismatch",
    summary: "The image is of another operating system than the amiFamily whose user data Karpenter writes",
    stages: &[Stage::Join],
    reads: &[Input::NodeClaims, Input::NodeClasses],
    lint: true,
    versions: "all",
    page: include_str!("../../../pages/AmiFamilyMismatch.md"),
    check,
};

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
    let published = image_name::family(&ami.name);
    let ubuntu = image_name::is_ubuntu_for_eks(&ami.name);
    // Karpenter has no family for Ubuntu since v1; that of AL2 writes what its images read.
    let built_for = published.or_else(|| if ubuntu { Some(Family::Al2) } else { image_name::hint(&ami.name) });
    let (Some(family), Some(built_for)) = (class.family(), built_for) else { return Opinion::Silent };
    let os = if ubuntu { "Ubuntu" } else { system(built_for) };
    if family == Family::Custom {
        return Opinion::Silent;
    }
    if family == built_for {
        // A name that only hints, or a class that was edited since, does not tell.
        if published.is_some() && case.class_is_as_at_launch() {
            return Opinion::ruled_out(class, format!("the image {} is one of {os}, which fits the class", ami.name));
        }
        return Opinion::Silent;
    }
    // A name is only a name: a machine that joined with this image and this class knows better.
    if let Some(joined) = case.same_spec_siblings_joined().find(|s| s.status.image_id == ami.id) {
        return Opinion::ruled_out(
            joined,
            format!("NodeClaim {} has joined with the image {}", joined.name(), ami.name),
        );
    }
    let written = class.family_name();
    let summary = format!(
        "{} {} says {written}, so Karpenter writes {}, but the image {} is {}{} and does not understand it.",
        class.kind,
        class.name(),
        reads(family),
        ami.name,
        if published.is_some() { "" } else { "by its name " },
        os
    );
    let object = format!("{}/{}", class.kind, class.name());
    Finding::new(
        if published.is_some() { Confidence::Certain } else { Confidence::Likely },
        summary,
        Evidence::new(&object, "spec.amiFamily", written, format!("user data is written for {}", system(family))),
    )
    .with(Evidence::new(
        &object,
        "status.amis",
        format!("{} {}", ami.id, ami.name),
        format!("by its name this is one of {os}, which expects {}", reads(built_for)),
    ))
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, "the machine runs this image"))
    .blaming(Blame::object(&class.api_version, &class.kind, class.name()).field("spec.amiFamily"))
    .fix(if ubuntu {
        "Set amiFamily to AL2, whose user data Ubuntu's images for EKS read (or Custom with user data of your own), or select an image of the family.".to_owned()
    } else {
        format!("Select an image of the family {written}, or set amiFamily to the image's ({os}).")
    })
    .step(
        Risk::Mutating,
        "Select by alias, which fits image and family together",
        Some(format!("kubectl edit ec2nodeclass {}", class.name())),
    )
    .into()
}
