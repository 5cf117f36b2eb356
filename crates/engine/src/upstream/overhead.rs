//! What Karpenter keeps back of an instance type for the kubelet and the system, where it reckons whether a pod fits.
//!
//! Source: karpenter-provider-aws v1.0.8, v1.14.1 pkg/providers/instancetype/types.go `kubeReservedResources`,
//! `systemReservedResources`, `evictionThreshold`, `memory`.

use crate::objects::{NodeClass, NodePool, quantity};
use crate::upstream::instance_types::network;
use crate::upstream::karpenter::{Karpenter, Version};
use serde_json::Value;
use std::collections::BTreeMap;

type Settings = BTreeMap<String, Value>;

pub const MIB: f64 = 1_048_576.0;
pub const GIB: f64 = 1_073_741_824.0;

/// The parts of a volume that Karpenter does not count as free for pods, in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KeptBack {
    pub kube: f64,
    pub system: f64,
    pub eviction: f64,
}

impl KeptBack {
    pub fn total(self) -> f64 {
        self.kube + self.system + self.eviction
    }
}

/// The kubelet's settings: the class has them, and before v1 the NodePool had.
fn settings<'o>(class: &'o NodeClass, pool: &'o NodePool) -> &'o Settings {
    if class.spec.kubelet.is_empty() { &pool.spec.template.spec.kubelet } else { &class.spec.kubelet }
}

/// The parts that Karpenter keeps back of a volume of this many bytes for images and pods. `None` if a setting does not
/// parse.
pub fn of_volume(class: &NodeClass, pool: &NodePool, bytes: f64) -> Option<KeptBack> {
    let kubelet = settings(class, pool);
    let entry = |field: &str, key: &str| kubelet.get(field).and_then(|entries| entries.get(key));
    let reserved = |field: &str, unset: f64| match entry(field, "ephemeral-storage") {
        Some(value) => quantity::parse(value.as_str()?),
        None => Some(unset),
    };
    let threshold = |percent: &str| Some((bytes / 100.0 * percent.parse::<f64>().ok()?).ceil());
    let eviction = match entry("evictionHard", "nodefs.available") {
        // Which switches the threshold off.
        Some(value) if value == "100%" => Some(0.0),
        Some(value) => match value.as_str()?.split_once('%') {
            Some((percent, _)) => threshold(percent),
            None => quantity::parse(value.as_str()?),
        },
        None => threshold("10"),
    };
    Some(KeptBack {
        kube: reserved("kubeReserved", GIB)?,
        system: reserved("systemReserved", 0.0)?,
        eviction: eviction?,
    })
}

/// Whether the class or the NodePool sets how much CPU or memory is kept back, or how many pods a node may have.
pub fn is_told(class: &NodeClass, pool: &NodePool) -> bool {
    let matters = |key: &String| matches!(key.as_str(), "cpu" | "memory" | "memory.available");
    settings(class, pool).iter().any(|(field, value)| match field.as_str() {
        "kubeReserved" | "systemReserved" | "evictionHard" | "evictionSoft" => {
            value.as_object().is_none_or(|entries| entries.keys().any(matters))
        }
        "maxPods" | "podsPerCore" => true,
        _ => false,
    })
}

/// The CPUs that Karpenter keeps back by default on an instance with this many.
pub fn of_cpus(cpus: f64) -> f64 {
    const RANGES: [(f64, f64, f64); 4] =
        [(0.0, 1.0, 0.06), (1.0, 2.0, 0.01), (2.0, 4.0, 0.005), (4.0, f64::INFINITY, 0.0025)];
    RANGES.into_iter().map(|(from, to, part)| (cpus.clamp(from, to) - from) * part).sum()
}

/// Which part of the memory that EC2 tells of Karpenter takes away for the hypervisor and the kernel, before it has
/// seen a machine of the type; `None` where it cannot be read.
/// Source: karpenter-provider-aws v1.14.1 pkg/operator/options/options.go (VM_MEMORY_OVERHEAD_PERCENT).
pub fn memory_overhead(karpenter: &Karpenter) -> Option<f64> {
    let part = karpenter.memory_overhead.as_deref().map_or(Some(0.075), |text| text.parse().ok());
    part.filter(|part| (0.0..1.0).contains(part))
}

/// The memory that the kubelet of Amazon Linux reserves for the pods of network interfaces that Karpenter leaves out
/// with RESERVED_ENIS. `None` if the version counts them, or the type is unknown.
/// Source: karpenter-provider-aws v1.0.5, v1.5.1 pkg/providers/instancetype/types.go `kubeReservedResources`,
/// `ENILimitedPods`; no longer in v1.5.2.
pub fn left_out_for_interfaces(karpenter: &Karpenter, type_: &str) -> Option<f64> {
    const OF_A_POD: f64 = 11.0 * MIB;
    let reserved: u64 = karpenter.reserved_enis.as_deref()?.parse().ok()?;
    let network = network(type_)?;
    let pods = network.pods(0).saturating_sub(network.pods(reserved));
    if karpenter.version >= Version(1, 5, 2) || pods == 0 {
        return None;
    }
    Some(f64::from(u32::try_from(pods).ok()?) * OF_A_POD)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// types_test.go of Karpenter, and the kubelet of an m6a.2xlarge.
    #[test]
    fn reservations_are_those_of_karpenter() {
        for (cpus, kept) in [(1.0, 0.06), (2.0, 0.07), (4.0, 0.08), (8.0, 0.09), (96.0, 0.31)] {
            assert!((of_cpus(cpus) - kept).abs() < 1e-9, "{cpus}");
        }
    }

    #[test]
    fn a_volume_loses_what_is_reserved_and_the_threshold() {
        let class = |kubelet: serde_json::Value| -> NodeClass {
            serde_json::from_value(serde_json::json!({ "spec": { "kubelet": kubelet } })).unwrap()
        };
        let left = |kubelet: serde_json::Value| {
            of_volume(&class(kubelet), &NodePool::default(), 20.0 * GIB).map(|kept| 20.0 - kept.total() / GIB)
        };
        let known = |kubelet: serde_json::Value, gib: f64| (left(kubelet).unwrap() - gib).abs() < 1e-6;
        assert!(known(serde_json::json!({}), 17.0));
        let reserved = serde_json::json!({ "ephemeral-storage": "3Gi", "cpu": "1" });
        assert!(known(serde_json::json!({ "kubeReserved": reserved, "systemReserved": reserved }), 12.0));
        assert!(known(serde_json::json!({ "evictionHard": { "nodefs.available": "5%" } }), 18.0));
        assert!(known(serde_json::json!({ "evictionHard": { "nodefs.available": "100%" } }), 19.0));
        assert!(known(serde_json::json!({ "evictionHard": { "nodefs.available": "4Gi" } }), 15.0));
        assert_eq!(left(serde_json::json!({ "kubeReserved": { "ephemeral-storage": 3 } })), None);
    }
}
