//! The verdict as a condition of its Node, for tools that act on conditions: which conditions to write, and which to
//! remove.
//!
//! Only verdicts with a known cause and at least Likely, because other tools may delete a machine for it.

use crate::api::{Condition, Confidence, NODE_CONDITION, NamedUid, NodeDiagnosis};
use crate::cluster_state::ClusterState;
use crate::rules;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// The condition that a Node should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeVerdict {
    pub node: NamedUid,
    /// `None` removes the condition.
    pub condition: Option<Condition>,
}

pub(super) fn changes<'d>(
    open: impl Iterator<Item = &'d NodeDiagnosis>,
    cluster: &ClusterState,
    now: DateTime<Utc>,
) -> Vec<NodeVerdict> {
    let wanted: BTreeMap<&str, Condition> = open.filter_map(|d| wanted(d, cluster, now)).collect();
    let changed = cluster.nodes().filter_map(|node| {
        let condition = wanted.get(node.name());
        let stands = match (&*node.own_condition, condition) {
            (None, None) => true,
            (Some(own), Some(new)) => own.is_true() && own.reason == *new.reason && own.message == *new.message,
            _ => false,
        };
        let node = || NamedUid { name: node.name().to_owned(), uid: node.metadata.uid.to_string() };
        (!stands).then(|| NodeVerdict { node: node(), condition: condition.cloned() })
    });
    changed.collect()
}

fn wanted<'d>(
    diagnosis: &'d NodeDiagnosis,
    cluster: &ClusterState,
    now: DateTime<Utc>,
) -> Option<(&'d str, Condition)> {
    let status = diagnosis.status.as_ref()?;
    let named = diagnosis.spec.node.as_ref()?;
    let node = cluster.node(&named.name).filter(|node| *node.metadata.uid == *named.uid)?;
    if status.cause == rules::unknown::CAUSE || status.confidence < Confidence::Likely {
        return None;
    }
    let since = node.own_condition.as_ref().filter(|own| own.is_true()).and_then(|own| own.last_transition_time);
    let condition = Condition {
        type_: NODE_CONDITION.into(),
        status: "True".into(),
        last_transition_time: since.unwrap_or(now),
        reason: status.cause.clone(),
        message: status.summary.clone(),
        observed_generation: None,
    };
    Some((&named.name, condition))
}
