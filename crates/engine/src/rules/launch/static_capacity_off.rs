//! A NodePool with replicas, and a Karpenter that does not make them: the feature gate is off.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "StaticCapacityOff",
    summary: "The NodePool has replicas, and Karpenter's feature gate StaticCapacity is off",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClaims, Input::Deployments],
    lint: false,
    versions: "Karpenter 1.8 and later",
    page: include_str!("../../../pages/StaticCapacityOff.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool), Some(karpenter)) = (case.claim, case.pool(), case.karpenter()) else {
        return Opinion::Silent;
    };
    let Some(replicas) = pool.spec.replicas.filter(|replicas| *replicas > 0) else { return Opinion::Silent };
    if karpenter.gate("StaticCapacity") != Some(false) || case.cluster.claims_of_pool(pool.name()).next().is_some() {
        return Opinion::Silent;
    }
    let name = pool.name();
    let (namespace, deployment) = karpenter.place();
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: spec.replicas ({replicas}) makes it static, and Karpenter makes machines of such only with the feature gate StaticCapacity, which is off."
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.replicas",
            replicas.to_string(),
            "Karpenter leaves a NodePool with replicas out where it looks for room for pods, whether the gate is on or off",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].env[FEATURE_GATES]",
        "StaticCapacity=false",
        "the controllers that make and remove replicas are not started",
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", deployment)
            .namespace(namespace)
            .field("spec.template.spec.containers[0].env[FEATURE_GATES]"),
    )
    .fix("Turn the feature gate on (Helm: settings.featureGates.staticCapacity=true), or make a NodePool without replicas, which follows pods: replicas cannot be taken out of one that has it.")
    .step(
        Risk::Inspect,
        "See Karpenter's feature gates",
        Some(format!("kubectl get deployment -n {namespace} {deployment} -o yaml | grep -A1 FEATURE_GATES")),
    )
    .step(
        Risk::Mutating,
        "Turn the gate on",
        Some(format!("kubectl edit deployment -n {namespace} {deployment}")),
    )
    .into()
}
