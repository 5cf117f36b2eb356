//! A requirement with minValues of which a waiting pod leaves fewer values.

use crate::case::failing_round::held_up;
use crate::objects::{NodePool, Pod};
use crate::rules::prelude::*;

/// Source: sigs.k8s.io/karpenter v1.14.1 pkg/apis/crds/karpenter.sh_nodeclaims.yaml `spec.requirements`.
const TOO_FEW: &str = "requirements with 'minValues' must have at least that many values";
const ZONE: &str = "topology.kubernetes.io/zone";

pub(super) struct Narrowed<'w> {
    pub(super) key: &'w str,
    pub(super) min: u32,
    pub(super) left: u32,
    pub(super) pod: &'w Pod,
    /// Whether it is the pod's volume that leaves one zone.
    pub(super) by_volume: bool,
}

impl Narrowed<'_> {
    pub(super) fn sentence(&self, pool: &str) -> String {
        let Self { key, min, left, .. } = self;
        let (name, namespace) = (&self.pod.metadata.name, self.pod.metadata.namespace.as_deref().unwrap_or("default"));
        let whose = if self.by_volume { "The volume of Pod" } else { "Pod" };
        let values = if *left == 1 { "value" } else { "values" };
        format!(
            "{whose} {namespace}/{name} leaves {left} {values} of {key}, but NodePool {pool} has minValues {min} for \
             it."
        )
    }
}

/// The only requirement with minValues that a waiting pod narrows too far, if the error is about minValues.
pub(super) fn narrowed<'w>(case: &Case<'w>, pool: &'w NodePool, error: &str) -> Option<Narrowed<'w>> {
    let all = &pool.spec.template.spec.min_values;
    // Karpenter itself lists the instance types of a NodeClaim.
    if !error.contains(TOO_FEW) || all.iter().any(|(key, _)| key == "node.kubernetes.io/instance-type") {
        return None;
    }
    let cluster = case.cluster;
    let mut narrowed = all.iter().filter_map(|(key, min)| {
        held_up(cluster, pool).find_map(|pod| {
            let (left, by_volume) = values_left(pod, pool, key)?;
            (left < *min).then_some(Narrowed { key, min: *min, left, pod, by_volume })
        })
    });
    let first = narrowed.next()?;
    narrowed.next().is_none().then_some(first)
}

/// How many values of a label a pod leaves, and whether its volume does that. `None` if it does not ask for the label.
fn values_left(pod: &Pod, pool: &NodePool, key: &str) -> Option<(u32, bool)> {
    if pod.spec.node_selector.contains_key(key) {
        return Some((1, false));
    }
    let required = &pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution;
    // Karpenter tries one of several terms after the other.
    if let [term] = &*required.node_selector_terms
        && let Some(asked) = term.match_expressions.iter().find(|r| r.key == key && r.operator == "In")
    {
        let own = |value: &str| pool.spec.template.spec.requirements.iter().all(|r| r.key != key || r.admits(value));
        let left = asked.values.iter().filter(|value| own(value.as_str())).count();
        return u32::try_from(left).ok().map(|left| (left, false));
    }
    (key == ZONE && is_tied_to_a_zone(pod)).then_some((1, true))
}

/// Whether its volume exists, and the scheduler finds nodes in other zones than the volume's.
fn is_tied_to_a_zone(pod: &Pod) -> bool {
    let differs = |said: &str| {
        said.contains("didn't match PersistentVolume's node affinity") || said.contains("volume node affinity conflict")
    };
    !pod.spec.volumes.is_empty() && pod.unscheduled().is_some_and(differs)
}
