//! amiFamily Custom, and no user data: nothing tells the machine which cluster to join.

use crate::rules::prelude::*;
use readers::userdata::Family;

rule! {
    cause: CustomFamilyWithoutUserData,
    summary: "The node class has amiFamily Custom and no user data, so nothing makes the machine join",
    stages: [Join],
    reads: [NodeClaims, NodeClasses],
    lint: true,
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    if class.family() != Some(Family::Custom) {
        return None;
    }
    if class.spec.user_data.as_deref().is_some_and(|text| !text.trim().is_empty()) {
        return None;
    }
    if let Some(joined) = case.same_spec_sibling_joined() {
        let because = format!("NodeClaim {} has joined without user data: its image joins by itself", joined.name());
        return Some(Opinion::ruled_out(joined, because));
    }
    let name = class.name();
    let object = format!("{}/{name}", class.kind);
    Finding::new(
        // An image may hold its own bootstrap.
        Confidence::Likely,
        format!(
            "{} {name} has amiFamily Custom and no userData, and Karpenter writes none for this family: nothing makes \
             the machine join the cluster.",
            class.kind
        ),
        Evidence::new(&object, "spec.userData", "empty", "with Custom this is all that the machine runs at boot"),
    )
    .with(Evidence::new(
        &object,
        "spec.amiFamily",
        class.family_name(),
        "for every other family Karpenter writes the bootstrap itself",
    ))
    .blaming(Blame::class(class).field("spec.userData"))
    .fix("Write the bootstrap into userData, or set amiFamily to the family of the image, so that Karpenter writes it.")
    .change("Set amiFamily or userData", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()))
    .ask_aws(
        "Does the image join the cluster by itself?",
        format!(
            "aws ec2 get-console-output --latest --output text --instance-id {}",
            claim.instance_id().unwrap_or("INSTANCE")
        ),
    )
    .into()
}
