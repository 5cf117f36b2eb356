//! policy/v1 PodDisruptionBudget: which pods it speaks for.

use super::{LabelSelector, Meta, Pod, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: DisruptionBudgetSpec,
}

/// What it allows changes with every pod, and the eviction tells: only the selector is read.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct DisruptionBudgetSpec {
    /// In policy/v1 none selects nothing.
    pub selector: Option<LabelSelector>,
}

impl PodDisruptionBudget {
    /// Source: kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go `getPodDisruptionBudgets`.
    pub fn selects(&self, pod: &Pod) -> bool {
        self.metadata.namespace == pod.metadata.namespace
            && self.spec.selector.as_ref().is_some_and(|selector| selector.selects(&pod.metadata.labels))
    }
}
