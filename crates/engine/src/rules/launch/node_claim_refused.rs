//! The API server does not take the NodeClaims that Karpenter makes of a NodePool: only Karpenter's log says so.

use crate::api::{Blame, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::logged;
use logs::fact::Trouble;

pub static RULE: Rule = Rule {
    cause: "NodeClaimRefused",
    summary: "The API server refuses the NodeClaims that Karpenter makes of a NodePool",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::Logs],
    lint: false,
    versions: "all; seen only in Karpenter's log",
    page: include_str!("../../../pages/NodeClaimRefused.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let Some(root) = logged::root(case, &[Trouble::NodeClaimRefused]) else { return Opinion::Silent };
    let (name, error) = (pool.name(), root.error());
    let often = if root.fact.count > 1 { format!(", told {} times", root.fact.count) } else { String::new() };
    let template = &pool.spec.template;
    let has = format!(
        "{} requirements and {} labels",
        template.spec.requirements.len(),
        template.metadata.labels.iter().count()
    );
    Finding::new(
        root.confidence(),
        format!(
            "The API server refuses the NodeClaims that Karpenter makes of NodePool {name}{often}: {}.",
            logged::excerpt(error)
        ),
        root.evidence(),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template",
        has,
        "a NodeClaim has these as its requirements, with what its pods ask for",
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field(origin(error)))
    .fix("Change what the NodePool says there, so that a NodeClaim made of it for these pods is valid; a later Karpenter may allow it as it is.")
    .step(Risk::Mutating, "Change the NodePool", Some(format!("kubectl edit nodepool {name}")))
    .into()
}

/// The field of the NodePool that the refused field of the NodeClaim is made of.
/// Source: core v1.14.1 pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `NewNodeClaimTemplate`.
fn origin(error: &str) -> String {
    logged::path_in(error).map_or_else(|| "spec.template".to_owned(), |path| format!("spec.template.{path}"))
}
