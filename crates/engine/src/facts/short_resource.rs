//! Which resource no instance type has that a NodePool allows for a pod, as far as nodewhy's tables of instance types
//! prove it.

use crate::case::Case;
use crate::case::unplaced::Unplaced;
use crate::objects::input::Input;
use crate::objects::{NodeClass, NodePool};
use crate::upstream::gpus::{self, NoGpu};
use crate::upstream::instance_types::network;
use crate::upstream::karpenter::Karpenter;
use crate::upstream::overhead;
use crate::upstream::unplaced::outsized;
use readers::userdata::Family;

const TYPE: &str = "node.kubernetes.io/instance-type";
const FAMILY: &str = "karpenter.k8s.aws/instance-family";
const SIZE: &str = "karpenter.k8s.aws/instance-size";

/// Each allowed instance type or family, and why it has none of the GPUs. `None` if that is not known of all of them.
pub(crate) fn without_gpu(told: &Unplaced, pool: &NodePool, resource: &str) -> Option<Vec<(String, NoGpu)>> {
    [TYPE, FAMILY].into_iter().find_map(|key| {
        let values = listed(told, pool, key).filter(|values| !values.is_empty())?;
        values.into_iter().map(|value| gpus::why_without(resource, &value).map(|why| (value, why))).collect()
    })
}

/// Whether a NodeOverlay gives instance types this resource. `None` if nodewhy has read none, but Karpenter may.
pub(crate) fn has_overlay(case: &Case, resource: &str) -> Option<bool> {
    let reads_some = case.karpenter().is_none_or(Karpenter::has_overlays);
    if reads_some && case.cluster.missing(Input::NodeOverlays).is_some() {
        return None;
    }
    Some(case.cluster.node_overlays().any(|overlay| overlay.spec.capacity.get(resource).is_some()))
}

/// The allowed instance type that may hold the most pods, and how many, if these are too few for the pod and the
/// DaemonSets. `None` if a setting decides it, or if the table lacks a type.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go `pods`.
pub(crate) fn pods_at_most(told: &Unplaced, pool: &NodePool, class: &NodeClass) -> Option<(String, u64)> {
    let of_windows = class.family().is_none_or(|family| family == Family::Windows);
    if !class.is_ec2() || overhead::is_told(class, pool) || of_windows {
        return None;
    }
    let types = listed(told, pool, TYPE).or_else(|| {
        let (families, sizes) = (listed(told, pool, FAMILY)?, listed(told, pool, SIZE)?);
        Some(families.iter().flat_map(|family| sizes.iter().map(move |size| format!("{family}.{size}"))).collect())
    })?;
    // Interfaces that Karpenter reserves would only lower it.
    let held = |type_: String| network(&type_).map(|network| (type_, network.pods(0)));
    let held: Vec<(String, u64)> = types.into_iter().map(held).collect::<Option<_>>()?;
    let (type_, most) = held.into_iter().max_by_key(|(_, pods)| *pods)?;
    let total = told.total(pool);
    let (_, asked) = total.iter().find(|(resource, _)| *resource == "pods")?;
    (asked.parse::<u64>().ok()? > most).then_some((type_, most))
}

/// The values that NodePool and pod leave of a label, as Karpenter reports them. It lists five at most, so otherwise
/// those of the NodePool.
fn listed(told: &Unplaced, pool: &NodePool, key: &str) -> Option<Vec<String>> {
    let together = outsized(told.event, pool.name()).unwrap_or_default();
    let together = together.into_iter().find(|(asked, _)| *asked == key).and_then(|(_, values)| values);
    let together = together.map(|values| values.into_iter().map(str::to_owned).collect());
    together.or_else(|| {
        let own = pool.spec.template.spec.requirements.iter();
        let own = own.filter(|r| r.key == key && r.operator == "In").min_by_key(|r| r.values.len())?;
        Some(own.values.iter().map(|value| value.as_str().to_owned()).collect())
    })
}
