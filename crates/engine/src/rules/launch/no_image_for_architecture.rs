//! The NodePool requires an architecture that no image of its node class runs on.

use crate::objects::NodeClaim;
use crate::objects::intern::Interned;
use crate::rules::prelude::*;
use chrono::TimeDelta;

rule! {
    cause: NoImageForArchitecture,
    summary: "The NodePool requires an architecture that no image of its node class runs on",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeClaims],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (pool, class) = (case.pool()?, case.class()?);
    let (wanted, Some(have)) = (pool.architectures(), class.architectures()) else { return None };
    if wanted.is_empty() {
        return None;
    }
    if let Some(arch) = wanted.iter().find(|arch| have.contains(arch.as_str())) {
        return Some(Opinion::ruled_out(class, format!("{} {} has an image for {arch}", class.kind, class.name())));
    }
    if launched_all_the_same(case, wanted) {
        return None;
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
    .change("Select an image for it", format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name()))
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
