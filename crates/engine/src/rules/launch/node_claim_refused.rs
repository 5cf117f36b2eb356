//! The API server rejects the NodeClaims that Karpenter creates for a NodePool, and only Karpenter's log says so.

mod min_values;
mod outdated_definition;

use self::min_values::narrowed;
use self::outdated_definition::{is_outdated, of_definition};
use crate::explain::logged;
use crate::rules::prelude::*;
use logs::fact::Trouble;

rule! {
    cause: NodeClaimRefused,
    summary: "The API server rejects the NodeClaims that Karpenter creates for a NodePool",
    stages: [Launch],
    reads: [NodePools, Pods, Deployments, Logs],
    versions: "all; seen only in Karpenter's log",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let root = logged::root(case, &[Trouble::NodeClaimRefused])?;
    let (name, error) = (pool.name(), root.error());
    let often = if root.fact.count > 1 { format!(", logged {} times", root.fact.count) } else { String::new() };
    let template = &pool.spec.template;
    let has = format!(
        "{} requirements and {} labels",
        template.spec.requirements.len(),
        template.metadata.labels.iter().count()
    );
    let finding = Finding::new(
        root.confidence(),
        format!(
            "The API server rejects the NodeClaims that Karpenter creates for NodePool {name}{often}: {}.",
            logged::excerpt(error)
        ),
        root.evidence(),
    )
    .with(Evidence::new(
        format!("NodePool/{name}"),
        "spec.template",
        has,
        "they become requirements of a NodeClaim, together with what its pods request",
    ));
    if is_outdated(error) {
        return of_definition(case, finding).into();
    }
    let finding = finding
        .blaming(Blame::object("karpenter.sh/v1", "NodePool", name).field(origin(error)))
        .change("Change the NodePool", format!("kubectl edit nodepool {name}"));
    let Some(few) = narrowed(case, pool, error) else {
        return finding
            .fix(
                "Change what the message names in the NodePool, so that its NodeClaims for these pods are valid. A \
                 later Karpenter may allow it unchanged.",
            )
            .into();
    };
    let field = if few.by_volume { "spec.volumes" } else { "spec.nodeSelector, spec.affinity" };
    finding
        .adding(&few.sentence(name))
        .with(Evidence::new(
            format!("Pod/{}", few.pod.metadata.name),
            field,
            few.key.to_owned(),
            "its NodeClaim gets no more values of this label than the pod and its volumes leave",
        ))
        .fix(format!(
            "Lower minValues of {} in NodePool {name} from {} to {}, or remove it. A later Karpenter may allow it \
             unchanged.",
            few.key,
            few.min,
            few.left.max(1)
        ))
        .into()
}

/// The field of the NodePool that the rejected field of the NodeClaim comes from.
/// Source: core v1.14.1 pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go `NewNodeClaimTemplate`.
fn origin(error: &str) -> String {
    logged::path_in(error).map_or_else(|| "spec.template".to_owned(), |path| format!("spec.template.{path}"))
}
