//! Nodes with one image never join, while nodes with another image of the same class do.

use crate::explain::commands;
use crate::explain::contrast;
use crate::explain::image_drift;
use crate::rules::prelude::*;

rule! {
    cause: ImageNeverJoins,
    summary: "Nodes with one image never join while nodes with another do: the image is broken, or does not fit its \
              user data",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, AwsAuth, Deployments, AwsObservations],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (class, claim) = (case.class()?, case.claim?);
    let (split, confidence) = contrast::suspicion(case, "image", &[])?;
    // If Karpenter replaces nodes for the new image, another rule says more.
    if image_drift::replacement(case, claim, class).is_ok() {
        return None;
    }
    let latest =
        class.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()).filter(|a| a.ends_with("@latest"));
    let how =
        latest.map_or_else(String::new, |alias| format!(". The alias {alias} moves to each new release by itself"));
    let summary = format!(
        "No node of {} {} with the image {} has joined, while all nodes with other images such as {} have{how}.",
        class.kind,
        class.name(),
        image_drift::named(class, split.value),
        split.elsewhere
    );
    let fix = match case.former_image() {
        Some(_) => format!(
            "New nodes get another image already. If they do not join either, pin the image {} that works.",
            split.elsewhere
        ),
        None => format!("Pin the image {} that works until the new one works too.", split.elsewhere),
    };
    contrast::finding(case, &split, confidence, summary)
        .with(image_drift::selected(class, split.value))
        .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
        .fix(fix)
        .change("Pin the old image", commands::pin(class, &[split.elsewhere]))
        .into()
}
