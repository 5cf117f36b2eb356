//! Pods must be spread over zones, but one version of Karpenter counts none for pods that select a NodePool by name.

use crate::facts::workload::PodWorkload;
use crate::rules::prelude::*;

rule! {
    cause: SpreadCountsNoZone,
    summary: "Karpenter 1.8.4 finds no zone for pods that are spread over zones and select a NodePool by its name",
    stages: [Launch],
    reads: [NodePools, Events, Pods, Deployments],
    versions: "1.8.4 (core 1.8.1)",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool), Some(karpenter)) = (case.claim, case.pool(), case.karpenter()) else {
        return None;
    };
    let told = case.uncounted().next()?;
    let about = &told.event.involved_object;
    let namespace = about.namespace.as_deref().unwrap_or("default");
    let workload = PodWorkload::of(told.pod, namespace, &about.name);
    let (own, deployment) = karpenter.deployment.split_once('/').unwrap_or(("default", &karpenter.deployment));
    Finding::new(
        Confidence::Certain,
        format!(
            "NodePool {name} launches nothing for Pod {namespace}/{}: Karpenter {} counts no zone at all for the pod's \
             topology spread (topologySpreadConstraints). The pod selects its NodePool by name \
             (karpenter.sh/nodepool={name}), a label that this version does not count for new nodes.",
            about.name,
            karpenter.version,
            name = pool.name(),
        ),
        Evidence::new(
            format!("Event Pod/{}", about.name),
            "message",
            told.event.said(),
            "the counts are empty, although any zone of the NodePool's instance types should count",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[*].image",
        karpenter.version.to_string(),
        "it contains core 1.8.1, which filters zones by the pod's nodeSelector; 1.8.5 reverts that",
    ))
    .blaming(
        Blame::object("apps/v1", "Deployment", deployment)
            .namespace(own)
            .field("spec.template.spec.containers[*].image"),
    )
    .fix(
        "Upgrade Karpenter to 1.8.5 or later, or go back to 1.8.3. Until then, let the pods select the NodePool by a \
         label of its own (spec.template.metadata.labels) instead of karpenter.sh/nodepool, or set nodeAffinityPolicy: \
         Ignore in the constraint.",
    )
    .change("Install another version with its chart", format!("kubectl edit deployment -n {own} {deployment}"))
    .change("Or change how the pods select the NodePool", workload.edit())
    .into()
}
