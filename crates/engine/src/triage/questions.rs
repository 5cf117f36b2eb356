//! What is asked before a stuck machine is judged, the pods of its Node and the rights of its kubelet: asked, answered,
//! and for how long an answer is good.

use super::change::ReadFailure;
use super::outbox::Order;
use crate::api::Stage;
use crate::case::Case;
use crate::cluster_state::{Availability, ClusterState, Subject};
use crate::objects::Node;
use crate::objects::input::{Input, Object};
use crate::rules;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::identity::Identity;
use std::collections::BTreeMap;

/// How long a verdict waits for what is asked on its behalf.
const ANSWER_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// How long an answer is good at least. The longer a machine is stuck, the less often it is asked again.
const FRESH: TimeDelta = TimeDelta::seconds(30);
const FRESH_AT_MOST: TimeDelta = TimeDelta::minutes(10);

#[derive(Debug)]
struct Asked {
    at: DateTime<Utc>,
    answered: bool,
}

/// Whether what the rules want to know is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Knowledge {
    Unwanted,
    AwaitedUntil(DateTime<Utc>),
    GoodUntil(DateTime<Utc>),
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    /// By Node.
    pods: BTreeMap<String, Asked>,
    access: BTreeMap<Identity, Asked>,
}

impl Questions {
    /// Sees to it that what the rules want to know of a stuck machine is known before it is judged.
    pub(super) fn prepare(&mut self, case: &Case, now: DateTime<Utc>) -> (Knowledge, Option<Order>) {
        let waited = now - case.wait.since;
        if waited < case.wait.proven {
            return (Knowledge::Unwanted, None);
        }
        let fresh = (waited / 8).clamp(FRESH, FRESH_AT_MOST);
        let (order, (is_asked, knowledge)) =
            if let Some(node) = case.node.filter(|_| reads_pods(case.stage())).map(Node::name) {
                (Order::ListPods(node.to_owned()), ask(&mut self.pods, node.to_owned(), now, fresh))
            } else if let Some(identity) = rules::identity_in_doubt(case) {
                (Order::ReviewAccess(identity.clone()), ask(&mut self.access, identity, now, fresh))
            } else {
                return (Knowledge::Unwanted, None);
            };
        (knowledge, is_asked.then_some(order))
    }

    /// Puts the pods of a Node, as they are now, in place of those before.
    pub(super) fn take_pods(
        &mut self,
        cluster: &mut ClusterState,
        node: &str,
        pods: Result<Vec<Object>, ReadFailure>,
        now: DateTime<Utc>,
    ) -> Availability {
        if let Some(list) = self.pods.get_mut(node) {
            list.answered = true;
        }
        match pods {
            Ok(pods) => {
                remove_pods(cluster, node);
                for pod in pods {
                    cluster.apply(pod, now);
                }
                Availability::Read
            }
            Err(failure) => Availability::Missing(failure.to_string()),
        }
    }

    /// An answer has come; false where nobody asks that any more, because aws-auth has changed.
    pub(super) fn has_answer(&mut self, identity: &Identity) -> bool {
        let asked = self.access.get_mut(identity);
        asked.map(|asked| asked.answered = true).is_some()
    }

    /// The Node is gone.
    pub(super) fn forget_node(&mut self, name: &str) {
        self.pods.remove(name);
    }

    /// The pods of a machine that is well are not kept.
    pub(super) fn settle(&mut self, cluster: &mut ClusterState, subject: &Subject) {
        let node = match subject {
            // The pods of a Node with a claim are the claim's.
            Subject::Node(name) => cluster.node(name).filter(|node| cluster.claim_of_node(node).is_none()),
            Subject::Claim(name) => cluster.claim(name).and_then(|claim| cluster.nodes_of(claim).first().copied()),
            Subject::Pool(_) | Subject::Class(..) | Subject::Instance(_) => None,
        };
        if let Some(node) = node.map(|node| node.name().to_owned())
            && self.pods.remove(&node).is_some()
        {
            remove_pods(cluster, &node);
        }
    }

    /// Other entries of aws-auth make other identities: those that are gone are not kept.
    pub(super) fn forget_access(&mut self, cluster: &mut ClusterState) {
        for identity in std::mem::take(&mut self.access).into_keys() {
            cluster.forget_access(&identity);
        }
    }
}

fn remove_pods(cluster: &mut ClusterState, node: &str) {
    let gone: Vec<_> = cluster.pods_on(node).map(|p| (p.metadata.namespace.clone(), p.metadata.name.clone())).collect();
    for (namespace, name) in gone {
        cluster.remove(Input::Pods, namespace.as_deref(), &name);
    }
}

/// Whether it is to be asked now, and what that means for the verdict.
fn ask<K: Ord>(asked: &mut BTreeMap<K, Asked>, what: K, now: DateTime<Utc>, fresh: TimeDelta) -> (bool, Knowledge) {
    let Some(before) = asked.get_mut(&what) else {
        asked.insert(what, Asked { at: now, answered: false });
        return (true, Knowledge::AwaitedUntil(now + ANSWER_WITHIN));
    };
    let good_until = before.at + if before.answered { fresh } else { ANSWER_WITHIN };
    if now >= good_until {
        before.at = now;
        return (true, Knowledge::GoodUntil(now + fresh));
    }
    (false, if before.answered { Knowledge::GoodUntil(good_until) } else { Knowledge::AwaitedUntil(good_until) })
}

/// Whether any rule for this stage reads pods.
fn reads_pods(stage: Stage) -> bool {
    rules::of_stage(stage).is_some_and(|of_stage| of_stage.reads.contains(&Input::Pods))
}
