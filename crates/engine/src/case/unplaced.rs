//! Pods that wait for a machine, and that Karpenter makes none for.

use crate::objects::{Event, NodeClass, NodePool, Pod, Requirement};
use crate::upstream::unplaced::{self, PlacementObstacle};
use chrono::{DateTime, Utc};

/// A pod that Karpenter found no room for in a NodePool.
#[derive(Debug, Clone, Copy)]
pub struct Unplaced<'w> {
    pub event: &'w Event,
    pub refusal: PlacementObstacle,
    /// Where it was read.
    pub pod: Option<&'w Pod>,
}

impl Unplaced<'_> {
    /// Whether the NodePool can launch nothing, as its own fields show or Karpenter says, whatever the pod asks for.
    pub fn shows_fault(&self, pool: &NodePool, class: Option<&NodeClass>) -> bool {
        self.refusal == PlacementObstacle::Limits
            || class.and_then(|class| pool.zones_without_subnet(class)).is_some_and(|zones| zones.all)
    }

    /// Whether it still waits, as far as its event and the pod itself tell.
    pub fn waits(&self, now: DateTime<Utc>) -> bool {
        let repeated = unplaced::is_repeated(self.event, now);
        let unbound = |pod: &Pod| pod.spec.node_name.is_empty() && pod.metadata.deletion_timestamp.is_none();
        repeated && self.pod.map_or_else(|| self.event.times() > 1, unbound)
    }

    pub fn since(&self) -> Option<DateTime<Utc>> {
        self.event.first_timestamp.or(self.event.event_time).or(self.event.last_seen())
    }

    /// Whether the NodePool is meant for the pod. Where no instance type was left, Karpenter has seen to that; else
    /// nothing but the pod itself tells.
    pub fn is_for(&self, pool: &NodePool) -> bool {
        self.refusal == PlacementObstacle::NoInstanceType || self.pod.is_some_and(|pod| admits(pool, pod))
    }
}

fn admits(pool: &NodePool, pod: &Pod) -> bool {
    let taints = pool.spec.template.spec.taints.iter().filter(|taint| taint.effect != "PreferNoSchedule");
    let terms =
        &pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms;
    taints.into_iter().all(|taint| pod.spec.tolerations.iter().any(|own| own.tolerates(taint)))
        && pod.spec.node_selector.iter().all(|(key, value)| may_have(pool, key, Some(value)))
        && (terms.is_empty() || terms.iter().any(|term| term.match_expressions.iter().all(|r| meets(pool, r))))
}

fn meets(pool: &NodePool, wanted: &Requirement) -> bool {
    match wanted.operator.as_str() {
        "In" => wanted.values.iter().any(|value| may_have(pool, &wanted.key, Some(value))),
        "NotIn" => pool
            .spec
            .template
            .metadata
            .label(&wanted.key)
            .is_none_or(|own| !wanted.values.iter().any(|value| value == own)),
        "DoesNotExist" => pool.spec.template.metadata.label(&wanted.key).is_none(),
        _ => may_have(pool, &wanted.key, None),
    }
}

/// Whether its machines may have this label: those that the user invented stand in the NodePool, others are the
/// instance type's.
fn may_have(pool: &NodePool, key: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return own_label(pool, key) || is_of_instance(key) };
    if key == "karpenter.sh/nodepool" {
        return value == pool.name();
    }
    if let Some(own) = pool.spec.template.metadata.label(key) {
        return own == value;
    }
    let mut required = pool.spec.template.spec.requirements.iter().filter(|r| r.key == key).peekable();
    (required.peek().is_some() || is_of_instance(key)) && required.all(|r| r.admits(value))
}

fn own_label(pool: &NodePool, key: &str) -> bool {
    let template = &pool.spec.template;
    template.metadata.label(key).is_some() || template.spec.requirements.iter().any(|r| r.key == key)
}

/// Source: core pkg/apis/v1/labels.go `WellKnownLabels` (v1.14.1); karpenter-provider-aws v1.14.1 pkg/apis/v1/labels.go.
fn is_of_instance(key: &str) -> bool {
    matches!(
        key,
        "karpenter.sh/capacity-type"
            | "karpenter.sh/nodepool"
            | "kubernetes.io/arch"
            | "kubernetes.io/os"
            | "node.kubernetes.io/instance-type"
            | "topology.kubernetes.io/region"
            | "topology.kubernetes.io/zone"
            | "topology.k8s.aws/zone-id"
    ) || key.starts_with("karpenter.k8s.aws/")
        || key.starts_with("eks.amazonaws.com/instance-")
}
