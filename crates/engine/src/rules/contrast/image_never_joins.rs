//! Nodes with one image never join, while nodes with another image of the same class do.

use crate::api::{Blame, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::explain::commands;
use crate::explain::contrast;
use crate::explain::image_drift;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "ImageNeverJoins",
    summary: "Nodes with one image never join while nodes with another do: the image is broken, or does not fit its \
              user data",
    stages: &[Stage::Join],
    reads: &[Input::NodeClaims, Input::NodeClasses, Input::AwsAuth, Input::Deployments, Input::AwsObservations],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/ImageNeverJoins.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(class), Some(claim)) = (case.class(), case.claim) else { return Opinion::Silent };
    let Some((split, confidence)) = contrast::suspicion(case, "image", &[]) else { return Opinion::Silent };
    // If Karpenter replaces nodes for the new image, another rule says more.
    if image_drift::replacement(case, claim, class).is_ok() {
        return Opinion::Silent;
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
        .step(Risk::Mutating, "Pin the old image", Some(commands::pin(class, &[split.elsewhere])))
        .into()
}
