//! The volumes of a pod can be attached in one zone only, and no machine for it can be made there.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::workload::PodWorkload;
use crate::upstream::unplaced::Bound;

pub static RULE: Rule = Rule {
    cause: "VolumeTiesPodToZone",
    summary: "The volumes of a pod are in zones where no machine can be made for it",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::Events, Input::Pods],
    lint: false,
    versions: "all",
    page: include_str!("../../../pages/VolumeTiesPodToZone.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (None, Some(pool)) = (case.claim, case.pool()) else { return Opinion::Silent };
    let told = case.unplaced().find_map(|told| Some((told, told.pod?, told.bound_by_volumes(pool)?)));
    let Some((told, pod, bound)) = told else { return Opinion::Silent };
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
            format!("its volumes ({claims}), with what it asks for itself, want several zones at once"),
            Blame::object("v1", "PersistentVolumeClaim", first)
                .namespace(namespace)
                .field("spec.volumeName"),
            "Bring the volumes into one zone (from snapshots), and give their StorageClass volumeBindingMode: WaitForFirstConsumer: with Immediate each gets a zone before anybody knows of the pod.".to_owned(),
            ("See the StorageClasses", Risk::Inspect, "kubectl get storageclasses".to_owned()),
        ),
        Bound::Outside { zones, allowed } => {
            let zones = zones.join(" or ");
            (
                format!("its volumes ({claims}) are in zone {zones}, and the NodePool allows {} only", allowed.join(", ")),
                Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements"),
                format!("Allow zone {zones} in NodePool {name} (with a subnet of its node class), or bring the volumes into a zone that it allows."),
                ("Allow the zone", Risk::Mutating, format!("kubectl edit nodepool {name}")),
            )
        }
        Bound::Unspread { zones, wanted } => (
            format!(
                "its volumes ({claims}) are in zone {}, and its topology spread (topologySpreadConstraints) wants zone {} next",
                zones.join(" or "),
                wanted.join(" or ")
            ),
            workload.blame().field(format!("{}.topologySpreadConstraints", workload.spec())),
            "Let the spread be a wish (whenUnsatisfiable: ScheduleAnyway) or its maxSkew larger, or bring the volume into a zone that has the fewest of these pods.".to_owned(),
            ("Change the spread", Risk::Mutating, workload.edit()),
        ),
        Bound::Unaccompanied { zones, friends } => (
            format!(
                "its volumes ({claims}) are in zone {}, and the pods that its affinity (podAffinity) wants it beside are in zone {}",
                zones.join(" or "),
                friends.join(" or ")
            ),
            workload.blame().field(format!("{}.affinity.podAffinity", workload.spec())),
            "Let the affinity be a wish (preferredDuringSchedulingIgnoredDuringExecution), keep the pods that it selects in the volume's zone, or bring the volume into theirs.".to_owned(),
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
            "Karpenter adds the zones of a pod's volumes to what it asks for",
        ),
    )
    .with(Evidence::new(
        format!("Pod/{}", pod.metadata.name),
        "spec.volumes",
        claims.clone(),
        "a volume of EBS can be attached in its own zone only",
    ))
    .blaming(blame)
    .fix(fix)
    .step(Risk::Inspect, "See where the volumes are (Node Affinity)", Some(see))
    .step(change.1, change.0, Some(change.2))
    .into()
}
