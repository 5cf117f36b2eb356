//! What an answer was judged from, and when: an all-clear is worth what was looked at.

use super::{Confidence, Stage, Text};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What was judged. Beside the diagnoses of a `NodeDiagnosisList`, so that an empty list says what it is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    /// What was asked about, where that is not everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub about: Vec<About>,
    /// The time at which everything was judged.
    pub at: DateTime<Utc>,
    pub clock: JudgedBy,
    pub node_claims: usize,
    pub nodes: usize,
    pub node_pools: usize,
    pub node_classes: usize,
    /// Machines that only their logs tell of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub logs: usize,
    /// Machines, NodePools and node classes that are stuck.
    pub stuck: usize,
    /// Machines that wait at a stage, not yet for longer than is normal; the longest wait first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingMachine>,
    /// Pods that Karpenter makes no machine for, where nothing that is stuck explains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<UnplacedPods>,
    /// What could not be read and would have been looked at, by the names that users know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Objects and fields that nodewhy could not read and did not judge, a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// The other time that a dump may have been made at, where that gives another answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<Otherwise>,
}

/// One object that was asked about, and its machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub kind: String,
    pub name: String,
    /// Its NodeClaims, where it is a NodePool or a node class.
    pub node_claims: usize,
    /// How many are stuck by each cause.
    pub causes: BTreeMap<String, usize>,
    /// Diagnoses that name this very object as the one to change.
    pub blamed: usize,
}

/// A machine that waits as machines do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingMachine {
    pub name: String,
    pub stage: Stage,
    pub since: DateTime<Utc>,
    /// When it counts as stuck.
    pub until: DateTime<Utc>,
}

/// Pods that wait because of what they ask for, as far as the objects show: no machine is stuck, and none is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnplacedPods {
    pub pods: usize,
    /// The one that waits longest.
    pub namespace: String,
    pub name: String,
    pub since: DateTime<Utc>,
    /// What Karpenter says of it, shortened.
    pub message: String,
}

/// Where the time comes from at which everything was judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum JudgedBy {
    /// The user said it.
    Given,
    /// The present: the cluster was asked just now.
    Present,
    /// `nodewhy collect` wrote it into the dump.
    Collected,
    /// When the dump was written or piped.
    Written,
    /// The newest time in the dump.
    Newest,
    /// The newest time in logs, where there is no dump.
    Logged,
}

/// The answer at another time that is as plausible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Otherwise {
    pub at: DateTime<Utc>,
    pub clock: JudgedBy,
    /// What is stuck at that time only. It is not among the items.
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
