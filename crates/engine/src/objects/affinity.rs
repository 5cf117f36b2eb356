//! Which Nodes a pod may run on by its node affinity.

use super::{Meta, Requirement, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Affinity {
    #[serde(deserialize_with = "nullable")]
    pub node_affinity: NodeAffinity,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeAffinity {
    #[serde(deserialize_with = "nullable")]
    pub required_during_scheduling_ignored_during_execution: NodeSelector,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelector {
    #[serde(deserialize_with = "nullable")]
    pub node_selector_terms: Vec<NodeSelectorTerm>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSelectorTerm {
    #[serde(deserialize_with = "nullable")]
    pub match_expressions: Vec<Requirement>,
    /// The DaemonSet controller writes the Node's name here.
    #[serde(deserialize_with = "nullable")]
    pub match_fields: Vec<Requirement>,
}

impl Affinity {
    /// The one Node that a pod of a DaemonSet is for, before the scheduler has bound it.
    /// Source: kubernetes v1.36.3 pkg/controller/daemon/util/daemonset_util.go
    /// `ReplaceDaemonSetPodNodeNameNodeAffinity`.
    pub fn node(&self) -> Option<&str> {
        let terms = &self.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms;
        let fields = terms.iter().flat_map(|term| &term.match_fields);
        let named = fields.filter(|field| field.key == "metadata.name" && field.operator == "In");
        named.flat_map(|field| field.values.iter()).next().map(crate::objects::intern::Interned::as_str)
    }

    /// The expressions that exclude a Node: one unmet expression per term, because one met term is enough. Empty if the
    /// Node is admitted.
    pub fn unmet(&self, node: &Meta) -> Vec<&Requirement> {
        let terms = &self.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms;
        let unmet: Vec<_> =
            terms.iter().filter_map(|t| t.match_expressions.iter().find(|r| !r.is_met_by(node))).collect();
        if unmet.len() == terms.len() { unmet } else { Vec::new() }
    }
}

impl Requirement {
    /// Source: kubernetes k8s.io/component-helpers/scheduling/corev1/nodeaffinity, apimachinery labels.Requirement
    /// `Matches` (v0.36.3).
    pub fn is_met_by(&self, node: &Meta) -> bool {
        let value = node.label(&self.key);
        let listed = value.is_some_and(|v| self.values.iter().any(|w| w == v));
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|v| number(v));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            "Gt" => value.and_then(number).zip(bound).is_some_and(|(v, b)| v > b),
            "Lt" => value.and_then(number).zip(bound).is_some_and(|(v, b)| v < b),
            _ => true,
        }
    }

    /// Whether a machine whose label has this value meets it, as far as it lists values.
    pub fn admits(&self, value: &str) -> bool {
        let named = self.values.iter().any(|own| own == value);
        match self.operator.as_str() {
            "In" => named,
            "NotIn" => !named,
            "DoesNotExist" => false,
            _ => true,
        }
    }

    /// `key=value`, `key among a, b and 7 more`, `key Exists`.
    pub fn shown(&self) -> String {
        match (self.operator.as_str(), &*self.values) {
            ("In", [one]) => format!("{}={one}", self.key),
            ("In", [one, two]) => format!("{} among {one}, {two}", self.key),
            ("In", [one, two, rest @ ..]) => format!("{} among {one}, {two} and {} more", self.key, rest.len()),
            (operator, values) => format!("{} {operator} {}", self.key, values.join(", ")).trim_end().to_owned(),
        }
    }
}
