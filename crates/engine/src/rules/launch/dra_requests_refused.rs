//! Karpenter launches no node for pods that request devices with a ResourceClaim.

use crate::rules::prelude::*;
use crate::upstream::karpenter::{Provider, Version};
use crate::upstream::unplaced::finds_no_device;

rule! {
    cause: DraRequestsRefused,
    summary: "Pods request devices with a ResourceClaim (Dynamic Resource Allocation), and this Karpenter launches no \
              node for them",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Events, Pods, Deployments],
    versions: "Karpenter 1.7 and later; earlier versions ignore ResourceClaims",
}

/// The first AWS provider that knows the devices of an instance type, those of NVIDIA and EFA. Core allocates since
/// 1.14.0, from what its provider reports.
/// Source: karpenter-provider-aws v1.15.1 pkg/providers/drametadata, charts/karpenter/values.yaml `settings.enableDRA`;
/// neither in v1.14.1.
const KNOWS_DEVICES: Version = Version(1, 15, 0);

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let told = case.unplaced().find(|u| u.refused_for_claims(pool))?;
    let about = &told.event.involved_object;
    let (name, namespace) = (&about.name, about.namespace.as_deref().unwrap_or("default"));
    let karpenter = case.karpenter();
    let version = karpenter.map_or_else(String::new, |karpenter| format!(" {}", karpenter.version));
    let switch = karpenter.filter(|karpenter| case.provider() == Provider::Aws && karpenter.version >= KNOWS_DEVICES);
    let because = if finds_no_device(told.event) {
        "Karpenter launches a node for a ResourceClaim only if it knows an instance type with such devices"
    } else {
        "Karpenter skips a pod with spec.resourceClaims, even if the NodePool has room for it"
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Pod {namespace}/{name} requests devices with a ResourceClaim, and Karpenter{version} launches no node for \
             such pods: NodePool {} does not grow for it.",
            pool.name()
        ),
        Evidence::new(format!("Event Pod/{name}"), "message", told.event.said(), because),
    );
    let finding = match (switch, karpenter) {
        (Some(karpenter), _) => {
            let (deployed_in, deployment) =
                karpenter.deployment.split_once('/').unwrap_or(("kube-system", "karpenter"));
            finding
                .with(Evidence::new(
                    format!("Deployment/{deployment}"),
                    "spec.template.spec.containers[0].image",
                    karpenter.version.to_string(),
                    "this version allocates devices of NVIDIA and EFA only if you configure it; by default it does not",
                ))
                .blaming(
                    Blame::object("apps/v1", "Deployment", deployment)
                        .namespace(deployed_in)
                        .field("spec.template.spec.containers[0].env"),
                )
                .fix(
                    "Let Karpenter allocate devices (the chart's settings.enableDRA=true, alpha). Or change the pod \
                      to request the device plugin's resource (nvidia.com/gpu) instead.",
                )
                .change(
                    "Set IGNORE_DRA_REQUESTS=false, and DRANVIDIAGPU=true or DRAEFA=true in AWS_FEATURE_GATES (set the \
                     same in the chart's values, or the next helm upgrade undoes it)",
                    format!("kubectl edit deployment -n {deployed_in} {deployment}"),
                )
        }
        (None, _) => {
            finding.blaming(Blame::object("v1", "Pod", name).namespace(namespace).field("spec.resourceClaims")).fix(
                "Change the pod to request the device plugin's resource (nvidia.com/gpu) instead. Or upgrade: \
                     Karpenter for AWS allocates devices of NVIDIA and EFA from 1.15 on (the chart's \
                     settings.enableDRA=true, alpha). Existing nodes of a managed node group or of a static NodePool \
                     accept the pod too.",
            )
        }
    };
    finding
        .inspect("See what the pod requests", format!("kubectl get pod -n {namespace} {name} -o yaml"))
        .inspect("See the ResourceClaims", format!("kubectl get resourceclaims -n {namespace}"))
        .into()
}
