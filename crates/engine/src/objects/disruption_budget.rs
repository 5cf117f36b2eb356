//! policy/v1 PodDisruptionBudget: which pods it speaks for, and whether it ever lets one go.

use super::meta::conditions;
use super::{Condition, LabelSelector, Meta, Pod, nullable};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct PodDisruptionBudget {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: DisruptionBudgetSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: DisruptionBudgetStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudgetSpec {
    /// In policy/v1 none selects nothing.
    pub selector: Option<LabelSelector>,
    pub min_available: Option<PodCount>,
    pub max_unavailable: Option<PodCount>,
    #[serde(deserialize_with = "nullable")]
    pub unhealthy_pod_eviction_policy: String,
}

/// A number of pods, or a part of them.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum PodCount {
    Pods(i64),
    Percent(String),
}

impl fmt::Display for PodCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pods(pods) => pods.fmt(f),
            Self::Percent(percent) => percent.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudgetStatus {
    #[serde(deserialize_with = "nullable")]
    pub current_healthy: i64,
    #[serde(deserialize_with = "nullable")]
    pub desired_healthy: i64,
    #[serde(deserialize_with = "nullable")]
    pub expected_pods: i64,
    pub disruptions_allowed: Option<i64>,
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

impl PodDisruptionBudget {
    /// Source: kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go `getPodDisruptionBudgets`.
    pub fn selects(&self, pod: &Pod) -> bool {
        self.metadata.namespace == pod.metadata.namespace
            && self.spec.selector.as_ref().is_some_and(|selector| selector.selects(&pod.metadata.labels))
    }

    /// The condition that says whether one of its pods may be evicted now, and since when. Before Kubernetes 1.21 only
    /// the status says so.
    pub fn allowed(&self) -> Option<&Condition> {
        conditions(&self.status.conditions, "DisruptionAllowed")
    }

    /// Whether none of its pods may be evicted now.
    pub fn allows_nothing(&self) -> bool {
        self.allowed().map_or(self.status.disruptions_allowed == Some(0), Condition::is_false)
    }

    /// Whether it allows nothing even while all of its pods are healthy.
    pub fn never_allows(&self) -> bool {
        self.status.desired_healthy >= self.status.expected_pods
    }

    /// Whether this pod may go because it is not Ready, whatever is allowed of those that are.
    /// Source: kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go `Create`.
    pub fn lets_go_unready(&self, pod: &Pod) -> bool {
        let DisruptionBudgetStatus { current_healthy, desired_healthy, .. } = self.status;
        let always = self.spec.unhealthy_pod_eviction_policy == "AlwaysAllow";
        !pod.is_ready() && (always || (desired_healthy > 0 && current_healthy >= desired_healthy))
    }

    /// `maxUnavailable: 0`
    pub fn bound(&self) -> Option<String> {
        let max = self.spec.max_unavailable.as_ref().map(|share| format!("maxUnavailable: {share}"));
        max.or_else(|| Some(format!("minAvailable: {}", self.spec.min_available.as_ref()?)))
    }
}
