//! karpenter.sh/v1alpha1 NodeOverlay: what Karpenter is to believe of instance types.

use super::{Condition, Meta, NodePool, Pairs, Requirement, conditions, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeOverlay {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeOverlaySpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodeOverlayStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeOverlaySpec {
    /// Resources that instance types have beside what EC2 tells of them.
    #[serde(deserialize_with = "nullable")]
    pub capacity: Pairs,
    /// What instance types and their offerings must meet, so that it applies to them.
    #[serde(deserialize_with = "nullable")]
    pub requirements: Vec<Requirement>,
    /// The price that Karpenter takes for them.
    pub price: Option<String>,
    /// The change of their price: `-68%`, `+0.1`.
    pub price_adjustment: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeOverlayStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

/// A change of prices that may make spot capacity dearer than on-demand capacity for Karpenter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpotDearer<'o> {
    /// The capacity type whose price it changes.
    pub capacity_type: &'static str,
    /// The field of the change, in `spec`.
    pub field: &'static str,
    pub change: &'o str,
}

impl NodeOverlay {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Whether Karpenter refused it. One of two that contradict each other is.
    /// Source: core pkg/controllers/nodeoverlay/controller.go (v1.14.1).
    pub fn is_refused(&self) -> bool {
        conditions(&self.status.conditions, "Ready").is_some_and(Condition::is_false)
    }

    fn admits(&self, key: &str, value: &str) -> bool {
        self.spec.requirements.iter().filter(|r| r.key == *key).all(|r| r.admits(value))
    }

    /// Whether it may apply to what a NodePool launches: no list of values in the NodePool excludes it.
    /// Source: core pkg/apis/v1alpha1/nodeoverlay.go `Requirements` (v1.14.1).
    pub fn may_apply_to(&self, pool: &NodePool) -> bool {
        let mut listed = pool.spec.template.spec.requirements.iter().filter(|r| r.operator == "In");
        self.admits("karpenter.sh/nodepool", pool.name())
            && listed.all(|r| r.values.iter().any(|value| self.admits(&r.key, value)))
    }

    /// The change, if it lowers the price of on-demand capacity and not of spot, or raises that of spot alone. A fixed
    /// price may do either.
    /// Source: core pkg/cloudprovider/types.go `AdjustedPrice` (v1.14.1).
    pub fn makes_spot_dearer(&self) -> Option<SpotDearer<'_>> {
        const KEY: &str = "karpenter.sh/capacity-type";
        let adjustment = self.spec.price_adjustment.as_deref().map(|change| ("priceAdjustment", change));
        let (field, change) = adjustment.or(self.spec.price.as_deref().map(|change| ("price", change)))?;
        let (capacity_type, away) = match (self.admits(KEY, "on-demand"), self.admits(KEY, "spot")) {
            (true, false) => ("on-demand", '+'),
            (false, true) => ("spot", '-'),
            _ => return None,
        };
        (!change.starts_with(away)).then_some(SpotDearer { capacity_type, field, change })
    }
}

#[cfg(test)]
mod tests {
    use super::{NodeOverlay, NodePool};
    use serde_json::{Value, json};

    fn overlay(spec: &Value) -> NodeOverlay {
        serde_json::from_value(json!({"metadata": {"name": "savings-plan"}, "spec": spec})).expect("an overlay")
    }

    fn of(capacity_types: &[&str]) -> Value {
        json!([{"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types}])
    }

    #[test]
    fn only_a_change_of_one_capacity_type_makes_spot_dearer() {
        let change = |types: &[&str], change: &str| {
            let overlay = overlay(&json!({"requirements": of(types), "priceAdjustment": change}));
            overlay.makes_spot_dearer().map(|dearer| dearer.capacity_type)
        };
        assert_eq!(change(&["on-demand"], "-68%"), Some("on-demand"));
        assert_eq!(change(&["spot"], "+10%"), Some("spot"));
        assert_eq!(change(&["on-demand"], "+10%"), None);
        assert_eq!(change(&["spot"], "-0.1"), None);
        assert_eq!(change(&["spot", "on-demand"], "-68%"), None);
        let fixed = overlay(&json!({"requirements": of(&["on-demand"]), "price": "0.01"}));
        assert_eq!(fixed.makes_spot_dearer().map(|dearer| (dearer.field, dearer.change)), Some(("price", "0.01")));
        let of_capacity = overlay(&json!({"requirements": of(&["on-demand"]), "capacity": {"example.com/x": "1"}}));
        assert_eq!(of_capacity.makes_spot_dearer(), None);
    }

    #[test]
    fn it_applies_to_no_node_pool_that_its_requirements_exclude() {
        let pool: NodePool = serde_json::from_value(json!({
            "metadata": {"name": "general"},
            "spec": {"template": {"spec": {"requirements": [
                {"key": "karpenter.k8s.aws/instance-family", "operator": "In", "values": ["m7i", "c7i"]},
            ]}}},
        }))
        .expect("a NodePool");
        let applies = |key: &str, values: &[&str]| {
            let requirements = json!([{"key": key, "operator": "In", "values": values}]);
            overlay(&json!({"requirements": requirements, "priceAdjustment": "-68%"})).may_apply_to(&pool)
        };
        assert!(applies("karpenter.sh/nodepool", &["general", "gpu"]));
        assert!(!applies("karpenter.sh/nodepool", &["gpu"]));
        assert!(applies("karpenter.k8s.aws/instance-family", &["c7i"]));
        assert!(!applies("karpenter.k8s.aws/instance-family", &["r7i"]));
        assert!(applies("topology.kubernetes.io/zone", &["eu-west-1a"]), "the NodePool does not list its zones");
    }
}
