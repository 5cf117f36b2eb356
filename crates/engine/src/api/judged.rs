//! What nodewhy judged and when. An all-clear is worth only as much as what was read.

use super::{Confidence, Stage, Text};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scope and time of an answer. `NodeDiagnosisList` has it so that an empty list says what was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    /// The named objects that the user asked about. Empty if the user asked about everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<About>,
    /// The time at which everything was judged.
    pub at: DateTime<Utc>,
    pub clock: JudgedBy,
    pub node_claims: usize,
    pub nodes: usize,
    pub node_pools: usize,
    pub node_classes: usize,
    /// Machines that are known only from logs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub logs: usize,
    /// Machines, NodePools and node classes that are stuck.
    pub stuck: usize,
    /// Machines that wait at a stage for no longer than normal, the longest wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingMachine>,
    /// Pods that Karpenter launches no machine for, if no stuck object explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<UnplacedPods>,
    /// Inputs that nodewhy needed and could not read, by the names that users know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Objects and fields that nodewhy could not read and did not judge, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// The other possible time of the dump, if it gives another answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Otherwise>,
}

/// One object that the user asked about, and its machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub kind: String,
    pub name: String,
    /// Number of its NodeClaims, if it is a NodePool or a node class.
    pub node_claims: usize,
    /// How many of them are stuck, by cause.
    pub causes: BTreeMap<String, usize>,
    /// Number of diagnoses that name this object as the one to change.
    pub blamed: usize,
}

/// A machine that waits no longer than normal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingMachine {
    pub name: String,
    pub stage: Stage,
    pub since: DateTime<Utc>,
    /// When it counts as stuck.
    pub until: DateTime<Utc>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub because: Text,
}

/// Pods that wait because of their own requests, as far as the objects show: no machine is stuck, and Karpenter
/// launches none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnplacedPods {
    pub pods: usize,
    /// The pod that has waited longest.
    pub namespace: String,
    pub name: String,
    pub since: DateTime<Utc>,
    /// Karpenter's message about this pod, shortened.
    pub message: String,
}

/// The source of the time at which everything was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JudgedBy {
    /// The user gave it.
    Given,
    /// The present, because nodewhy reads a live cluster.
    Present,
    /// `nodewhy collect` wrote it into the dump.
    Collected,
    /// The time when the dump was written or piped.
    Written,
    /// The newest time in the dump.
    Newest,
    /// The newest time in the logs, if there is no dump.
    Logged,
}

/// The answer for another, equally plausible time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Otherwise {
    pub at: DateTime<Utc>,
    pub clock: JudgedBy,
    /// Objects that are stuck only at that time. They are not among the items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_stuck: Vec<AlsoStuck>,
    /// The items that are not stuck at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_stuck: Vec<String>,
}

/// A verdict in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlsoStuck {
    pub name: String,
    pub cause: Text,
    pub confidence: Confidence,
    pub summary: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
