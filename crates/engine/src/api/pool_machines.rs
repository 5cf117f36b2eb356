//! Counts of the stuck machines of a NodePool.

use super::{Text, schema_limits};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many machines of a NodePool are stuck, and why. The counts follow the cluster within half a minute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolMachines {
    /// Machines that are stuck now.
    #[schemars(with = "i32", range(min = 0))]
    pub stuck: u32,
    /// The machine whose verdict this is. Absent if the NodePool has its own verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The stuck machines by cause, the most frequent cause first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::CAUSES))]
    pub causes: Vec<MachinesOfCause>,
    /// Machines that were launched since the incident began, and deleted before they joined.
    #[schemars(with = "i32", range(min = 0))]
    pub failed_launches: u32,
    /// Total seconds that their instances ran. Each one counts from its firstObservedAt.
    #[schemars(with = "i64", range(min = 0))]
    pub failed_launch_seconds: u64,
    /// The machine of the NodePool that joined last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_joined: Option<LastJoined>,
}

/// The machines that are stuck by one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinesOfCause {
    /// The cause.
    pub cause: Text,
    /// Machines that are stuck now.
    #[schemars(with = "i32", range(min = 0))]
    pub stuck: u32,
    /// Machines that were stuck by this cause so far, ended ones included.
    #[schemars(with = "i32", range(min = 0))]
    pub so_far: u32,
}

/// A machine that joined.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LastJoined {
    /// When Karpenter registered it.
    pub at: DateTime<Utc>,
    /// Name of the NodeClaim.
    pub name: String,
}
