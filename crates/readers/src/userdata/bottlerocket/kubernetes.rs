//! Values below `settings.kubernetes` that Bottlerocket's API server refuses, though their type is right.

use std::net::IpAddr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::source_text::Span;
use crate::userdata::{go_values, has_expansion, kubelet_config};

/// Settings and the fields of the kubelet's configuration that take the same values.
// bottlerocket v1.19.0 sources/models/modeled-types/src/kubernetes.rs: CpuManagerPolicy, TopologyManagerPolicy,
// TopologyManagerScope, KubernetesEvictionKey, KubernetesThresholdValue, KubernetesReservedResourceKey,
// KubernetesQuantityValue, IntegerPercent
const AS_KUBELET: &[(&str, &str)] = &[
    ("container-log-max-size", "containerLogMaxSize"),
    ("cpu-manager-policy", "cpuManagerPolicy"),
    ("eviction-hard", "evictionHard"),
    ("eviction-soft", "evictionSoft"),
    ("eviction-soft-grace-period", "evictionSoftGracePeriod"),
    ("image-gc-high-threshold-percent", "imageGCHighThresholdPercent"),
    ("image-gc-low-threshold-percent", "imageGCLowThresholdPercent"),
    ("kube-reserved", "kubeReserved"),
    ("memory-manager-policy", "memoryManagerPolicy"),
    ("system-reserved", "systemReserved"),
    ("topology-manager-policy", "topologyManagerPolicy"),
    ("topology-manager-scope", "topologyManagerScope"),
];

// The same file: KubernetesDurationValue.
const DURATIONS: &[&str] = &[
    "container-log-monitor-interval",
    "cpu-manager-reconcile-period",
    "shutdown-grace-period",
    "shutdown-grace-period-for-critical-pods",
];

// The same file: KubernetesHostnameOverrideSource.
const HOSTNAMES: [&str; 2] = ["private-dns-name", "instance-id"];

/// Goes through the table; what is found begins with the setting's name. `by_karpenter` where Karpenter names the DNS
/// server.
pub fn check(table: &DeTable<'_>, by_karpenter: bool, found: &mut impl FnMut(Span, String)) {
    for (key, value) in super::in_order(table) {
        let key = key.get_ref().as_ref();
        if by_karpenter && key == "cluster-dns-ip" {
            continue;
        }
        match value.get_ref() {
            DeValue::Table(entries) => {
                for (entry, value) in super::in_order(entries) {
                    of_entry(key, entry.get_ref().as_ref(), value, found);
                }
            }
            DeValue::String(text) if !has_expansion(text) => {
                if let Some(why) = of_text(key, text) {
                    found(super::spanned(value.span()), format!("{key} {why}"));
                }
            }
            _ => {}
        }
    }
}

/// Huge pages among what the memory manager reserves. The kubelet takes only what is reserved for the node too, and
/// nothing can reserve huge pages for it.
// kubernetes v1.36.3 pkg/kubelet/cm/memorymanager/memory_manager.go validateReservedMemory, cmd/kubelet/app/server.go
// parseResourceList; bottlerocket-os/bottlerocket#4754
pub fn reserved_huge_pages(table: &DeTable<'_>) -> Option<(Span, String)> {
    const SETTING: &str = "memory-manager-reserved-memory";
    let DeValue::String(policy) = table.get("memory-manager-policy")?.get_ref() else { return None };
    let DeValue::Table(nodes) = table.get(SETTING)?.get_ref() else { return None };
    if &**policy != "Static" {
        return None;
    }
    super::in_order(nodes).find_map(|(node, reserved)| {
        let DeValue::Table(reserved) = reserved.get_ref() else { return None };
        if !matches!(reserved.get("enabled")?.get_ref(), DeValue::Boolean(true)) {
            return None;
        }
        let (key, _) = super::in_order(reserved)
            .find(|(key, amount)| key.get_ref().starts_with("hugepages-") && is_some_amount(amount.get_ref()))?;
        let message = format!(
            "{SETTING}.{} reserves {}, which kubeReserved, systemReserved and evictionHard cannot",
            node.get_ref(),
            key.get_ref()
        );
        Some((super::spanned(key.span()), message))
    })
}

fn is_some_amount(value: &DeValue<'_>) -> bool {
    matches!(value, DeValue::String(text) if text.starts_with(|c: char| ('1'..='9').contains(&c)))
}

fn of_text(key: &str, text: &str) -> Option<String> {
    if let Some((_, field)) = AS_KUBELET.iter().find(|(setting, _)| *setting == key) {
        if field.ends_with("Percent") && text.parse::<u8>().is_err() {
            return Some(format!("{text:?} must be a whole number"));
        }
        return kubelet_config::refusal(field, text);
    }
    if DURATIONS.contains(&key) {
        return go_values::duration(text).err().map(|why| format!("is no duration: {why}"));
    }
    match key {
        "cluster-dns-ip" if text.parse::<IpAddr>().is_err() => Some(format!("{text:?} is no address")),
        "hostname-override-source" if !HOSTNAMES.contains(&text) => {
            Some(format!("{text:?} must be {}", HOSTNAMES.join(" or ")))
        }
        _ => None,
    }
}

fn of_entry(map: &str, entry: &str, value: &Spanned<DeValue<'_>>, found: &mut impl FnMut(Span, String)) {
    let mut tell =
        |value: &Spanned<DeValue<'_>>, why| found(super::spanned(value.span()), format!("{map}.{entry} {why}"));
    match (map, value.get_ref()) {
        (_, DeValue::String(text)) if has_expansion(text) || has_expansion(entry) => {}
        ("static-pods", DeValue::Table(pod)) => {
            if let Some(manifest) = pod.get("manifest")
                && let DeValue::String(text) = manifest.get_ref()
                && !has_expansion(text)
                && !go_values::is_base64(text)
            {
                tell(manifest, "needs a manifest in base64".to_owned());
            }
        }
        (_, DeValue::String(text)) => {
            if let Some((_, field)) = AS_KUBELET.iter().find(|(setting, _)| *setting == map)
                && let Some(why) = kubelet_config::refusal(&format!("{field}.{entry}"), text)
            {
                tell(value, why);
            }
        }
        _ => {}
    }
}
