//! The volumes of a pod can be attached only in one zone, and Karpenter can launch no node for it there.

use crate::facts::workload::PodWorkload;
use crate::rules::prelude::*;
use crate::upstream::unplaced::Bound;

rule! {
    cause: VolumeTiesPodToZone,
    summary: "The volumes of a pod are in zones where Karpenter can launch no node for it",
    stages: [Launch],
    reads: [NodePools, NodeClasses, Events, Pods],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return None };
    let told = case.unplaced().find_map(|told| Some((told, told.pod?, told.bound_by_volumes(pool)?)));
    let (told, pod, bound) = told?;
    let (name, namespace) = (pool.name(), pod.metadata.namespace.as_deref().unwrap_or("default"));
    let claims: Vec<&str> = pod.spec.volumes.iter().map(|v| v.persistent_volume_claim.claim_name.as_str()).collect();
    let see = format!(
        "kubectl get persistentvolumeclaims -n {namespace} {}; kubectl describe persistentvolumes",
        claims.join(" ")
    );
    let first = claims.first().copied().unwrap_or_default();
    let claims = claims.join(", ");
    let workload = PodWorkload::of(Some(pod), namespace, &pod.metadata.name);
    let (why, blame, fix, change) = match bound {
        Bound::Apart => (
            format!("its volumes ({claims}), together with its own requirements, need several zones at once"),
            Blame::object("v1", "PersistentVolumeClaim", first).namespace(namespace).field("spec.volumeName"),
            "Move the volumes into one zone (from snapshots), and give their StorageClass volumeBindingMode: \
             WaitForFirstConsumer. With Immediate, each volume gets a zone before a pod uses it."
                .to_owned(),
            ("See the StorageClasses", Risk::Inspect, "kubectl get storageclasses".to_owned()),
        ),
        Bound::Outside { zones, allowed } => {
            let zones = zones.join(" or ");
            (
                format!(
                    "its volumes ({claims}) are in zone {zones}, but the NodePool allows only {}",
                    allowed.join(", ")
                ),
                Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"),
                format!(
                    "Allow zone {zones} in NodePool {name} (its node class needs a subnet there), or move the volumes \
                     into a zone that it allows."
                ),
                ("Allow the zone", Risk::Mutating, format!("kubectl edit nodepool {name}")),
            )
        }
        Bound::Unspread { zones, wanted } => (
            format!(
                "its volumes ({claims}) are in zone {}, but its topology spread (topologySpreadConstraints) requires \
                 zone {} next",
                zones.join(" or "),
                wanted.join(" or ")
            ),
            workload.blame().field(format!("{}.topologySpreadConstraints", workload.spec())),
            "Make the spread a preference (whenUnsatisfiable: ScheduleAnyway) or its maxSkew larger. Or move the \
             volume into a zone that has the fewest of these pods."
                .to_owned(),
            ("Change the spread", Risk::Mutating, workload.edit()),
        ),
        Bound::Unaccompanied { zones, friends } => (
            format!(
                "its volumes ({claims}) are in zone {}, but its affinity (podAffinity) requires pods that are in zone \
                 {}",
                zones.join(" or "),
                friends.join(" or ")
            ),
            workload.blame().field(format!("{}.affinity.podAffinity", workload.spec())),
            "Make the affinity a preference (preferredDuringSchedulingIgnoredDuringExecution). Or keep the pods that \
             it selects in the volume's zone, or move the volume into theirs."
                .to_owned(),
            ("Change the affinity", Risk::Mutating, workload.edit()),
        ),
    };
    Finding::new(
        Confidence::Certain,
        format!("NodePool {name} launches nothing for Pod {namespace}/{}: {why}.", pod.metadata.name),
        Evidence::new(
            format!("Event Pod/{}", pod.metadata.name),
            "message",
            told.event.said(),
            "Karpenter adds the zones of a pod's volumes to the pod's requirements",
        ),
    )
    .with(Evidence::new(
        format!("Pod/{}", pod.metadata.name),
        "spec.volumes",
        claims.clone(),
        "an EBS volume can be attached only in its own zone",
    ))
    .blaming(blame)
    .fix(fix)
    .inspect("See where the volumes are (Node Affinity)", see)
    .step(change.1, change.0, Some(change.2))
    .into()
}
