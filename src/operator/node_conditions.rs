//! Decides when nodewhy writes the verdict on a Node. If another tool overwrites the condition, nodewhy writes it again
//! after half a minute, then doubles the wait each time.

use crate::operator::lease::Leads;
use crate::operator::publish::node_condition::{self, Ordered};
use chrono::{DateTime, TimeDelta, Utc};
use engine::api::Text;
use engine::triage::{NodeVerdict, Triage};
use kube::Client;
use std::collections::BTreeMap;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Whether Nodes carry their verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum NodeConditionMode {
    /// Write no conditions, and keep existing ones.
    Off,
    On,
    /// Remove the conditions that nodewhy wrote earlier.
    Clear,
}

/// How often to look for conditions that other tools have overwritten.
const TURN: TimeDelta = TimeDelta::seconds(10);
const FIRST: TimeDelta = TimeDelta::seconds(30);
const LAST: TimeDelta = TimeDelta::hours(1);

/// The last ordered write.
#[derive(Debug)]
struct Attempt {
    /// The reason and the message. `None` if the condition was removed.
    said: Option<(Text, Text)>,
    at: DateTime<Utc>,
    wait: TimeDelta,
}

/// Limits how often nodewhy writes the same condition on a Node.
#[derive(Debug, Default)]
struct Patience(BTreeMap<String, Attempt>);

impl Patience {
    /// Whether the condition may be written now. If so, it counts as written.
    fn permits(&mut self, verdict: &NodeVerdict, now: DateTime<Utc>) -> bool {
        let said = verdict.condition.as_ref().map(|c| (c.reason.clone(), c.message.clone()));
        let before = self.0.get(&verdict.node.uid).filter(|attempt| attempt.said == said);
        let wait = match before {
            Some(attempt) if now - attempt.at < attempt.wait => return false,
            Some(attempt) => (attempt.wait * 2).min(LAST),
            None => FIRST,
        };
        self.0.insert(verdict.node.uid.clone(), Attempt { said, at: now, wait });
        true
    }

    fn forget(&mut self, now: DateTime<Utc>) {
        self.0.retain(|_, attempt| now - attempt.at < LAST * 2);
    }
}

pub(super) struct NodeConditions {
    mode: NodeConditionMode,
    orders: mpsc::Sender<Ordered>,
    patience: Patience,
    /// The revision of the diagnoses at the last look, and its time.
    looked: Option<(u64, DateTime<Utc>)>,
}

impl NodeConditions {
    pub(super) fn start(
        mode: NodeConditionMode,
        client: Client,
        leads: Leads,
        tasks: &mut JoinSet<()>,
    ) -> Option<Self> {
        let asked_for = mode != NodeConditionMode::Off;
        let orders = || node_condition::start(client, leads, tasks);
        asked_for.then(|| Self { mode, orders: orders(), patience: Patience::default(), looked: None })
    }

    /// Orders the writes of this term. Only the leader calls it.
    pub(super) fn look(&mut self, triage: &Triage, term: u64, now: DateTime<Utc>) {
        let said = triage.revision();
        if self.looked.is_some_and(|(before, at)| before == said && now - at < TURN) {
            return;
        }
        self.looked = Some((said, now));
        self.patience.forget(now);
        for verdict in triage.node_verdicts(self.mode == NodeConditionMode::On, now) {
            // The rest at the next turn.
            let Ok(permit) = self.orders.try_reserve() else { return };
            if self.patience.permits(&verdict, now) {
                permit.send((term, verdict));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::api::{Condition, NODE_CONDITION, NamedUid};

    fn verdict(reason: Option<&str>) -> NodeVerdict {
        let condition = |reason: &str| Condition {
            type_: NODE_CONDITION.into(),
            status: "True".into(),
            last_transition_time: DateTime::UNIX_EPOCH,
            reason: reason.to_owned().into(),
            message: Text::default(),
            observed_generation: None,
        };
        NodeVerdict { node: NamedUid { name: "n".into(), uid: "1".into() }, condition: reason.map(condition) }
    }

    #[test]
    fn who_fights_over_the_condition_is_answered_ever_later_and_news_at_once() {
        let mut patience = Patience::default();
        // Another tool removes it each time, at once.
        let said: Vec<i64> = (0..4 * 3600)
            .filter(|second| patience.permits(&verdict(Some("A")), DateTime::UNIX_EPOCH + TimeDelta::seconds(*second)))
            .collect();
        assert_eq!(said[..5], [0, 30, 90, 210, 450]);
        assert!(said.len() < 12, "{said:?}");
        let later = DateTime::UNIX_EPOCH + TimeDelta::seconds(4 * 3600 + 1);
        assert!(patience.permits(&verdict(Some("B")), later) && patience.permits(&verdict(None), later));
    }
}
