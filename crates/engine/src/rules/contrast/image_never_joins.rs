//! Nodes with one image never join, while nodes with another image of the same class do.

use crate::api::{Blame, Evidence, Risk, Stage};
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
    let named = |id: &str| {
        class.status.amis.iter().find(|a| a.id == id).map_or_else(|| id.to_owned(), |a| format!("{id} ({})", a.name))
    };
    let latest =
        class.spec.ami_selector_terms.iter().find_map(|t| t.alias.as_deref()).filter(|a| a.ends_with("@latest"));
    let how =
        latest.map_or_else(String::new, |alias| format!(". The alias {alias} moves to each new release by itself"));
    let summary = format!(
        "No node of {} {} with the image {} has joined, while all nodes with other images such as {} have{how}.",
        class.kind,
        class.name(),
        named(split.value),
        split.elsewhere
    );
    let object = format!("{}/{}", class.kind, class.name());
    contrast::finding(case, &split, confidence, summary)
        .with(Evidence::new(object, "status.amis", named(split.value), "new nodes get the first entry that fits"))
        .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
        .fix(format!("Pin the image {} that works until the new one works too.", split.elsewhere))
        .step(Risk::Mutating, "Pin the old image", Some(commands::pin(class, &[split.elsewhere])))
        .into()
}
