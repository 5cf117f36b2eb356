//! The selected image is an operating system without Kubernetes: no kubelet, no bootstrap.

use crate::explain::instance_questions::ask_the_instance;
use crate::rules::prelude::*;
use readers::userdata::Family;
use readers::userdata::image_name;

rule! {
    cause: NotAnEksImage,
    summary: "The image is a plain or an ECS-optimized operating system: it has no kubelet and no EKS bootstrap",
    stages: [Join],
    reads: [NodeClaims, NodeClasses],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    let ami = class.status.amis.iter().find(|a| a.id == claim.status.image_id)?;
    let what = image_name::without_kubelet(&ami.name)?;
    // With Custom, your own text may install what the image lacks.
    if class.family().is_none_or(|f| f == Family::Custom) {
        return None;
    }
    if let Some(joined) = case.sibling_joined_with("image", &ami.id) {
        return Some(Opinion::ruled_out(
            joined,
            format!("NodeClaim {} has joined with the image {}", joined.name(), ami.name),
        ));
    }
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    let own_text = class.spec.user_data.as_deref().is_some_and(|text| !text.trim().is_empty());
    let finding = Finding::new(
        if own_text { Confidence::Likely } else { Confidence::Certain },
        format!(
            "The image {} that {} {name} selects is {what}, not an EKS-optimized AMI. It has no kubelet and no \
             bootstrap for amiFamily {}, so the instance never joins.",
            ami.name,
            class.kind,
            class.family_name()
        ),
        Evidence::new(
            &object,
            "status.amis",
            format!("{} {}", ami.id, ami.name),
            "by its name this image is not made for EKS",
        ),
    )
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, "the instance runs this image"))
    .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
    .fix(
        "Select an EKS-optimized image, best by alias (al2023@VERSION, bottlerocket@VERSION). A name pattern such as \
         al2023-* takes the newest image of any kind.",
    )
    .change("Select by alias", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()));
    if own_text { ask_the_instance(case, finding).into() } else { finding.into() }
}
