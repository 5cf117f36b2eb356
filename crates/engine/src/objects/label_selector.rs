//! Which objects a selector selects, by their labels.

use super::{Pairs, Requirement, nullable};
use serde::{Deserialize, Serialize};

/// `metav1.LabelSelector`. An empty one selects everything.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    #[serde(deserialize_with = "nullable")]
    pub match_labels: Pairs,
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Box<[Requirement]>,
}

impl LabelSelector {
    /// Source: kubernetes k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go `LabelSelectorAsSelector`,
    /// pkg/labels/selector.go `Matches` (v0.36.3).
    pub fn selects(&self, labels: &Pairs) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|wanted| {
                let has = labels.get(&wanted.key);
                let among = has.is_some_and(|value| wanted.values.iter().any(|one| *one == *value));
                match &*wanted.operator {
                    "In" => among,
                    "NotIn" => !among,
                    "Exists" => has.is_some(),
                    "DoesNotExist" => has.is_none(),
                    _ => false,
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::{LabelSelector, Pairs};
    use serde_json::json;

    #[test]
    fn all_of_a_selector_must_hold() {
        let labels: Pairs = [("app", "web"), ("tier", "edge")].into_iter().collect();
        let selects = |selector: serde_json::Value| {
            serde_json::from_value::<LabelSelector>(selector).expect("a selector").selects(&labels)
        };
        assert!(selects(json!({})));
        assert!(selects(json!({"matchLabels": {"app": "web"}})));
        assert!(!selects(json!({"matchLabels": {"app": "web", "tier": "core"}})));
        assert!(selects(json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]})));
        assert!(!selects(json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]})));
        assert!(selects(json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["web"]}]})));
        assert!(selects(json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]})));
        assert!(!selects(json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]})));
    }
}
