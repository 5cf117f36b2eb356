//! The machines of a NodePool that are stuck, counted: what people ask for who have three hundred of them.

use super::{Text, schema_limits};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many machines of a NodePool are stuck, and why; as of the last write, which follows within half a minute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolMachines {
    /// Machines that are stuck now.
    #[schemars(with = "i32", range(min = 0))]
    pub stuck: u32,
    /// The machine whose verdict stands here; absent where the NodePool has one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// The same by cause, the most machines first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema_limits::CAUSES))]
    pub causes: Vec<MachinesOfCause>,
    /// Machines that were launched since the incident began, and deleted before they joined.
    #[schemars(with = "i32", range(min = 0))]
    pub failed_launches: u32,
    /// For how many seconds the instances of these machines ran in all, from when nodewhy saw them wait.
    #[schemars(with = "i64", range(min = 0))]
    pub failed_launch_seconds: u64,
    /// The machine of the NodePool that joined last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_joined: Option<LastJoined>,
}

/// The machines that one cause holds up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachinesOfCause {
    /// The cause.
    pub cause: Text,
    /// Machines that are stuck now.
    #[schemars(with = "i32", range(min = 0))]
    pub stuck: u32,
    /// All of them, those included that ended.
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
