//! The NodePool requires an architecture that no image of its node class runs on.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::NodeClaim;
use crate::objects::input::Input;
use crate::objects::intern::Interned;
use crate::rules::Rule;
use chrono::TimeDelta;

pub static RULE: Rule = Rule {
    cause: "NoImageForArchitecture",
    summary: "The NodePool requires an architecture that no image of its node class runs on",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::NodeClaims],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/NoImageForArchitecture.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(pool), Some(class)) = (case.pool(), case.class()) else { return Opinion::Silent };
    let (wanted, Some(have)) = (pool.architectures(), class.architectures()) else { return Opinion::Silent };
    if wanted.is_empty() {
        return Opinion::Silent;
    }
    if let Some(arch) = wanted.iter().find(|arch| have.contains(arch.as_str())) {
        return Opinion::ruled_out(class, format!("{} {} has an image for {arch}", class.kind, class.name()));
    }
    if launched_all_the_same(case, wanted) {
        return Opinion::Silent;
    }
    let (wanted, have) = (wanted.join(" or "), have.into_iter().collect::<Vec<_>>().join(", "));
    let (name, object) = (pool.name(), format!("{}/{}", class.kind, class.name()));
    let images = class
        .status
        .amis
        .iter()
        .map(|a| if a.name.is_empty() { a.id.as_str() } else { a.name.as_str() })
        .collect::<Vec<_>>()
        .join(", ");
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} requires architecture {wanted}, but {} {} selects images for {have} only, so no instance \
             type is left and Karpenter launches nothing.",
            class.kind,
            class.name()
        ),
        Evidence::new(object, "status.amis", images, format!("requirements: kubernetes.io/arch {have}")),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template.spec.requirements",
        format!("kubernetes.io/arch In {wanted}"),
        "no image of the class runs on it",
    ))
    .blaming(Blame::class(class).field("spec.amiSelectorTerms"))
    .fix(format!(
        "Add an image for {wanted} to amiSelectorTerms (an alias selects one for each architecture), or set \
         kubernetes.io/arch of the NodePool to {have}."
    ))
    .step(
        Risk::Mutating,
        "Select an image for it",
        Some(format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name())),
    )
    .into()
}

/// Whether nodes of the architecture came from the NodePool a moment ago: then Karpenter does not use what the class
/// says about its images.
fn launched_all_the_same(case: &Case, wanted: &[Interned]) -> bool {
    const A_MOMENT: TimeDelta = TimeDelta::hours(1);
    let is_of = |claim: &&NodeClaim| {
        let arch = claim.metadata.label("kubernetes.io/arch");
        let is_new = claim.metadata.creation_timestamp.is_some_and(|at| case.now - at <= A_MOMENT);
        is_new && claim.is_true("Launched") && arch.is_some_and(|arch| wanted.iter().any(|own| **own == *arch))
    };
    case.pool().is_some_and(|pool| case.cluster.claims_of_pool(pool.name()).any(|claim| is_of(&claim)))
}
