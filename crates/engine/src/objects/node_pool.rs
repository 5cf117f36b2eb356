//! karpenter.sh/v1 NodePool.

use super::{
    CapacityReservation, Condition, Meta, NodeClass, NodeClassRef, Pairs, Requirement, Taint, conditions,
    masked_values, nullable, quantity,
};
use crate::objects::intern::Interned;
use readers::userdata::has_expansion;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePool {
    #[serde(rename = "apiVersion", deserialize_with = "nullable")]
    pub api_version: Interned,
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodePoolSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodePoolStatus,
    /// The node class of a Provisioner that has one of its own.
    #[serde(skip)]
    pub provider: Option<Box<NodeClass>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePoolSpec {
    #[serde(deserialize_with = "nullable")]
    pub template: Template,
    #[serde(deserialize_with = "quantities")]
    pub limits: Pairs,
    #[serde(deserialize_with = "nullable")]
    pub disruption: Disruption,
    /// If it is set, the NodePool is static. Core pkg/apis/v1/nodepool.go (since v1.8.0).
    pub replicas: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Disruption {
    #[serde(deserialize_with = "nullable")]
    pub budgets: Vec<Budget>,
}

/// How many machines may be disrupted at a time.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Budget {
    /// A number, or a percentage.
    #[serde(deserialize_with = "nullable")]
    pub nodes: String,
    /// The reasons of disruptions that it limits. Without any, it limits all.
    #[serde(deserialize_with = "nullable")]
    pub reasons: Vec<String>,
    /// When it begins to hold. Without one, it always holds.
    pub schedule: Option<String>,
}

/// Keeps the values that are quantities. Any other value is no limit, and may be anything.
pub(super) fn quantities<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    let is_quantity = |value: &str| {
        let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        value.len() - number.len() <= 2 && number.parse::<f64>().is_ok()
    };
    nullable::<D, Pairs>(deserializer).map(|pairs| pairs.with_values(is_quantity))
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Template {
    #[serde(deserialize_with = "nullable")]
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: TemplateSpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(from = "WrittenTemplateSpec", into = "WrittenTemplateSpec")]
pub struct TemplateSpec {
    pub node_class_ref: NodeClassRef,
    pub requirements: Vec<Requirement>,
    /// The `minValues` of requirements, by key. NodeClaims have many requirements, so [`Requirement`] has no field for it.
    pub min_values: Vec<(Interned, u32)>,
    pub taints: Vec<Taint>,
    pub startup_taints: Vec<Taint>,
    pub expire_after: Option<String>,
    /// The kubelet's settings, where v1beta1 had them.
    pub kubelet: BTreeMap<String, serde_json::Value>,
}

/// The same as users write it.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenTemplateSpec {
    #[serde(deserialize_with = "nullable")]
    node_class_ref: NodeClassRef,
    #[serde(deserialize_with = "nullable")]
    requirements: Vec<WrittenRequirement>,
    #[serde(deserialize_with = "nullable")]
    taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    startup_taints: Vec<Taint>,
    expire_after: Option<String>,
    #[serde(deserialize_with = "nullable", serialize_with = "masked_values")]
    kubelet: BTreeMap<String, serde_json::Value>,
}

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenRequirement {
    #[serde(deserialize_with = "nullable")]
    key: Interned,
    #[serde(deserialize_with = "nullable")]
    operator: Interned,
    #[serde(deserialize_with = "nullable")]
    values: Box<[Interned]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_values: Option<u32>,
}

impl From<WrittenTemplateSpec> for TemplateSpec {
    fn from(written: WrittenTemplateSpec) -> Self {
        let mut min_values = Vec::new();
        let mut requirements = Vec::with_capacity(written.requirements.len());
        for WrittenRequirement { key, operator, values, min_values: min } in written.requirements {
            min_values.extend(min.map(|min| (key.clone(), min)));
            requirements.push(Requirement { key, operator, values });
        }
        Self {
            node_class_ref: written.node_class_ref,
            requirements,
            min_values,
            taints: written.taints,
            startup_taints: written.startup_taints,
            expire_after: written.expire_after,
            kubelet: written.kubelet,
        }
    }
}

impl From<TemplateSpec> for WrittenTemplateSpec {
    fn from(spec: TemplateSpec) -> Self {
        // In the order of the requirements, two of which may have one key.
        let mut least = spec.min_values.into_iter().peekable();
        let mut requirements = Vec::with_capacity(spec.requirements.len());
        for Requirement { key, operator, values } in spec.requirements {
            let min_values = least.next_if(|(own, _)| *own == key).map(|(_, min)| min);
            requirements.push(WrittenRequirement { key, operator, values, min_values });
        }
        Self {
            requirements,
            node_class_ref: spec.node_class_ref,
            taints: spec.taints,
            startup_taints: spec.startup_taints,
            expire_after: spec.expire_after,
            kubelet: spec.kubelet,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePoolStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

/// Zones that a NodePool allows and its node class has no subnet in.
#[derive(Debug)]
pub struct ZonesWithoutSubnet<'o> {
    /// The place of the requirement.
    pub at: usize,
    pub missing: Vec<&'o str>,
    /// Whether the class has a subnet in none that is allowed.
    pub all: bool,
    /// Where it has them.
    pub subnets: Vec<&'o str>,
}

impl NodePool {
    /// Karpenter launches only where the class has a subnet. `None` where the class has none at all, or does not tell.
    // karpenter-provider-aws v1.14.1 pkg/providers/instancetype/offering/offering.go createOfferings
    pub fn zones_without_subnet<'o>(&'o self, class: &'o NodeClass) -> Option<ZonesWithoutSubnet<'o>> {
        let subnets: BTreeSet<&str> =
            class.status.subnets.iter().map(|s| s.zone.as_str()).filter(|z| !z.is_empty()).collect();
        let requirements = self.spec.template.spec.requirements.iter().enumerate();
        let (at, zones) = requirements.into_iter().find(|(_, r)| {
            // Placeholders may become anything.
            r.key == "topology.kubernetes.io/zone" && r.operator == "In" && !r.values.iter().any(|v| has_expansion(v))
        })?;
        let missing: Vec<&str> =
            zones.values.iter().map(Interned::as_str).filter(|zone| !subnets.contains(zone)).collect();
        if subnets.is_empty() || missing.is_empty() {
            return None;
        }
        let all = missing.len() == zones.values.len();
        Some(ZonesWithoutSubnet { at, missing, all, subnets: subnets.into_iter().collect() })
    }

    /// Whether a limit of zero switches it off. Karpenter launches nothing for it, and nobody expects it to. Every
    /// instance type has some of these resources. A limit of zero GPUs forbids only the types with GPUs.
    /// Source: core v1.14.1 pkg/controllers/provisioning/scheduling/scheduler.go `filterByRemainingResources`.
    pub fn is_switched_off(&self) -> bool {
        ["nodes", "cpu", "memory", "pods", "ephemeral-storage"]
            .into_iter()
            .any(|resource| self.allows_none_of(resource))
    }

    /// Whether a limit of zero forbids every instance type that has this resource.
    pub fn allows_none_of(&self, resource: &str) -> bool {
        self.spec.limits.get(resource).and_then(quantity::parse) == Some(0.0)
    }

    /// The condition for which Karpenter launches nothing for it: it is invalid, or its node class is not there.
    /// Source: core pkg/controllers/nodepool/readiness, pkg/controllers/nodepool/validation (v1.14.3).
    pub fn unready(&self) -> Option<&Condition> {
        const REASONS: [&str; 3] = ["NodePoolValidationFailed", "NodeClassNotFound", "NodeClassTerminating"];
        let conditions =
            ["ValidationSucceeded", "NodeClassReady"].into_iter().filter_map(|type_| self.condition(type_));
        conditions.into_iter().find(|c| c.is_false() && REASONS.contains(&c.reason.as_str()))
    }

    /// Whether it allows no machine but in capacity reservations.
    pub fn is_reserved_only(&self) -> bool {
        let mut types = self.spec.template.spec.requirements.iter().filter(|r| r.key == "karpenter.sh/capacity-type");
        types.any(|r| r.operator == "In" && !r.values.is_empty() && r.values.iter().all(|value| value == "reserved"))
    }

    /// How many of so many nodes Karpenter may replace at a time because they have drifted, and the budget that says
    /// so: the strictest of those that always hold. One with a schedule can only allow less.
    /// Source: core pkg/apis/v1/nodepool.go `GetAllowedDisruptionsByReason` (v1.14.1), which rounds up.
    pub fn allowed_drift(&self, nodes: usize) -> Option<(usize, &str)> {
        let allowed = |budget: &Budget| match budget.nodes.strip_suffix('%') {
            Some(percent) => percent.parse::<usize>().ok().map(|percent| percent.saturating_mul(nodes).div_ceil(100)),
            None => budget.nodes.parse().ok(),
        };
        let holds = |budget: &&Budget| {
            budget.schedule.is_none()
                && (budget.reasons.is_empty() || budget.reasons.iter().any(|reason| reason == "Drifted"))
        };
        let budgets = self.spec.disruption.budgets.iter().filter(holds);
        budgets.filter_map(|budget| Some((allowed(budget)?, budget.nodes.as_str()))).min_by_key(|(allowed, _)| *allowed)
    }

    /// The capacity reservations of the class in which its machines may be.
    pub fn reservations<'o>(&'o self, class: &'o NodeClass) -> impl Iterator<Item = &'o CapacityReservation> {
        let has_subnet = |reservation: &&CapacityReservation| {
            let subnets = &class.status.subnets;
            subnets.is_empty() || subnets.iter().any(|subnet| subnet.zone == reservation.availability_zone)
        };
        let requirements = &self.spec.template.spec.requirements;
        let all = class.status.capacity_reservations.iter();
        all.filter(has_subnet).filter(|reservation| reservation.unmet(requirements).is_none())
    }

    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether both say the same of what Karpenter reckons its hash of, as far as that is read here.
    /// Source: core v1.14.3 pkg/apis/v1/nodepool.go `NodePool.Hash`: the template without its requirements.
    pub fn has_same_template(&self, other: &Self) -> bool {
        // Every field is named, so that a new one has to be thought of.
        let TemplateSpec {
            node_class_ref,
            requirements: _,
            min_values: _,
            taints,
            startup_taints,
            expire_after,
            kubelet,
        } = &self.spec.template.spec;
        let (meta, theirs) = (&self.spec.template.metadata, &other.spec.template);
        (&meta.labels, &meta.annotations) == (&theirs.metadata.labels, &theirs.metadata.annotations)
            && (node_class_ref, taints, startup_taints)
                == (&theirs.spec.node_class_ref, &theirs.spec.taints, &theirs.spec.startup_taints)
            && (expire_after, kubelet) == (&theirs.spec.expire_after, &theirs.spec.kubelet)
    }

    /// The architectures that it asks for, where it names them.
    pub fn architectures(&self) -> &[Interned] {
        let named =
            self.spec.template.spec.requirements.iter().find(|r| r.key == "kubernetes.io/arch" && r.operator == "In");
        named.map(|r| &*r.values).unwrap_or_default()
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions(&self.status.conditions, type_)
    }
}

#[cfg(test)]
mod tests {
    use super::NodePool;
    use serde_json::{Value, json};

    #[test]
    fn a_limit_of_zero_switches_off_if_no_type_is_without_the_resource() {
        let is_off = |limits: &Value| {
            let pool = json!({"metadata": {"name": "general"}, "spec": {"limits": limits}});
            serde_json::from_value::<NodePool>(pool).expect("a NodePool").is_switched_off()
        };
        for limits in [json!({"cpu": 0}), json!({"cpu": "64", "memory": "0Gi"}), json!({"nodes": "0"})] {
            assert!(is_off(&limits), "{limits}");
        }
        for limits in [json!({}), json!({"cpu": "10"}), json!({"nvidia.com/gpu": "0"}), json!({"cpu": "${LIMIT}"})] {
            assert!(!is_off(&limits), "{limits}");
        }
    }

    #[test]
    fn the_strictest_budget_that_always_holds_limits_drift() {
        let allowed = |budgets: &Value, nodes: usize| {
            let pool = json!({"metadata": {"name": "general"}, "spec": {"disruption": {"budgets": budgets}}});
            let pool: NodePool = serde_json::from_value(pool).expect("a NodePool");
            pool.allowed_drift(nodes).map(|(allowed, says)| (allowed, says.to_owned()))
        };
        let is = |allowed: usize, says: &str| Some((allowed, says.to_owned()));
        assert_eq!(allowed(&json!([{"nodes": "10%"}]), 4), is(1, "10%"));
        assert_eq!(allowed(&json!([{"nodes": "10%"}]), 11), is(2, "10%"));
        assert_eq!(allowed(&json!([{"nodes": "50%"}, {"nodes": "3"}]), 20), is(3, "3"));
        assert_eq!(allowed(&json!([{"nodes": "0", "reasons": ["Empty"]}, {"nodes": "2"}]), 20), is(2, "2"));
        assert_eq!(allowed(&json!([{"nodes": "1", "reasons": ["Drifted"]}, {"nodes": "2"}]), 20), is(1, "1"));
        assert_eq!(
            allowed(&json!([{"nodes": "0", "schedule": "@daily", "duration": "8h"}, {"nodes": "2"}]), 20),
            is(2, "2")
        );
        assert_eq!(allowed(&json!([]), 20), None);
        assert_eq!(allowed(&json!([{"nodes": "${BUDGET}"}]), 20), None);
    }
}
