//! A NodePool has replicas, but Karpenter does not create them: the feature gate is off.

use crate::rules::prelude::*;

rule! {
    cause: StaticCapacityOff,
    summary: "The NodePool has replicas, but Karpenter's feature gate StaticCapacity is off",
    stages: [Launch],
    reads: [NodePools, NodeClaims, Deployments],
    versions: "Karpenter 1.8 and later",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool), Some(karpenter)) = (case.claim, case.pool(), case.karpenter()) else {
        return None;
    };
    let replicas = pool.spec.replicas.filter(|replicas| *replicas > 0)?;
    if karpenter.gate("StaticCapacity") != Some(false) || case.cluster.claims_of_pool(pool.name()).next().is_some() {
        return None;
    }
    let name = pool.name();
    let (namespace, deployment) = karpenter.place();
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing: spec.replicas ({replicas}) makes it static. Karpenter serves static \
             NodePools only with the feature gate StaticCapacity on, and it is off."
        ),
        Evidence::new(
            format!("NodePool/{name}"),
            "spec.replicas",
            replicas.to_string(),
            "Karpenter skips a NodePool with replicas when it searches room for pods, whether the gate is on or off",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].env[FEATURE_GATES]",
        "StaticCapacity=false",
        "Karpenter does not start the controllers that create and remove replicas",
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", deployment)
            .namespace(namespace)
            .field("spec.template.spec.containers[0].env[FEATURE_GATES]"),
    )
    .fix(
        "Turn the feature gate on (Helm: settings.featureGates.staticCapacity=true). Or create a NodePool without \
         replicas, which follows pods: you cannot remove replicas from a NodePool that has them.",
    )
    .inspect(
        "See Karpenter's feature gates",
        format!("kubectl get deployment -n {namespace} {deployment} -o yaml | grep -A1 FEATURE_GATES"),
    )
    .change("Turn the gate on", format!("kubectl edit deployment -n {namespace} {deployment}"))
    .into()
}
