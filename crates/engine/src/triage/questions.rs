//! What is asked before something stuck is judged, the pods of its Node, those that wait for one, and the rights of its
//! kubelet: asked, answered, and for how long an answer is good.

use super::change::ReadFailure;
use super::outbox::Order;
use super::pool_pods;
use crate::case::Case;
use crate::cluster_state::{Availability, ClusterState, Subject};
use crate::objects::input::{Input, Object};
use crate::objects::{Node, Pod};
use crate::rules;
use chrono::{DateTime, TimeDelta, Utc};
use readers::aws_auth::identity::Identity;
use std::collections::BTreeMap;

/// How long a verdict waits for what is asked on its behalf.
const ANSWER_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// How long an answer is good at least. The longer a machine is stuck, the less often it is asked again.
const FRESH: TimeDelta = TimeDelta::seconds(30);
const FRESH_AT_MOST: TimeDelta = TimeDelta::minutes(10);

/// Stands for the pods that no Node has.
const WITHOUT_NODE: &str = "";

#[derive(Debug)]
struct Asked {
    at: DateTime<Utc>,
    answered: bool,
}

/// Whether what the rules want to know is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerState {
    Unwanted,
    AwaitedUntil(DateTime<Utc>),
    GoodUntil(DateTime<Utc>),
}

impl AnswerState {
    /// Both of them.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unwanted, one) | (one, Self::Unwanted) => one,
            (Self::AwaitedUntil(a), Self::AwaitedUntil(b)) => Self::AwaitedUntil(a.max(b)),
            (Self::AwaitedUntil(at), _) | (_, Self::AwaitedUntil(at)) => Self::AwaitedUntil(at),
            (Self::GoodUntil(a), Self::GoodUntil(b)) => Self::GoodUntil(a.min(b)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Questions {
    /// By Node; under [`WITHOUT_NODE`] those that wait for one.
    pods: BTreeMap<String, Asked>,
    access: BTreeMap<Identity, Asked>,
}

impl Questions {
    /// Sees to it that what the rules want to know of something stuck is known before it is judged.
    pub(super) fn prepare(&mut self, case: &Case, now: DateTime<Utc>) -> (AnswerState, Vec<Order>) {
        let waited = now - case.wait.since;
        if waited < case.wait.proven {
            return (AnswerState::Unwanted, Vec::new());
        }
        if let Some(node) = case.node.filter(|_| reads_pods(case)).map(Node::name) {
            // An agent's pod may wait to be scheduled there.
            return self.list([node, WITHOUT_NODE], waited, now);
        }
        let Some(identity) = rules::identity_in_doubt(case) else { return (AnswerState::Unwanted, Vec::new()) };
        let (is_asked, knowledge) = ask(&mut self.access, identity.clone(), now, fresh(waited));
        (knowledge, is_asked.then_some(Order::ReviewAccess(identity)).into_iter().collect())
    }

    /// The same for a NodePool that Karpenter calls full, or whose launches are refused: whether pods wait for it, and
    /// since when, the pods themselves tell.
    pub(super) fn prepare_pool(&mut self, since: DateTime<Utc>, now: DateTime<Utc>) -> (AnswerState, Vec<Order>) {
        self.list([WITHOUT_NODE], now - since, now)
    }

    fn list<const N: usize>(
        &mut self,
        nodes: [&str; N],
        waited: TimeDelta,
        now: DateTime<Utc>,
    ) -> (AnswerState, Vec<Order>) {
        let mut orders = Vec::new();
        let mut known = AnswerState::Unwanted;
        for node in nodes {
            let (is_asked, knowledge) = ask(&mut self.pods, node.to_owned(), now, fresh(waited));
            orders.extend(is_asked.then(|| Order::ListPods(node.to_owned())));
            known = known.and(knowledge);
        }
        (known, orders)
    }

    /// The Nodes whose pods are known, or asked for.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &str> {
        self.pods.keys().map(String::as_str).filter(|node| *node != WITHOUT_NODE)
    }

    /// Puts the pods of a Node, or those without one, as they are now in place of those before.
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
                // One that waits is filed under the Node that it was made for.
                let was_listed = |pod: &&Pod| *pod.spec.node_name == *node;
                let gone = match node {
                    WITHOUT_NODE => names(cluster.pods().filter(was_listed)),
                    node => names(cluster.pods_on(node).filter(was_listed)),
                };
                remove(cluster, gone);
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
    pub(super) fn settle(&mut self, cluster: &mut ClusterState, subject: &Subject, now: DateTime<Utc>) {
        let node = match subject {
            // The pods of a Node with a claim are the claim's.
            Subject::Node(name) => cluster.node(name).filter(|node| cluster.claim_of_node(node).is_none()),
            Subject::Claim(name) => cluster.claim(name).and_then(|claim| cluster.nodes_of(claim).first().copied()),
            Subject::Pool(_) | Subject::Class(..) | Subject::Instance(_) | Subject::Karpenter(_) => None,
        };
        if let Some(node) = node.map(|node| node.name().to_owned())
            && self.pods.remove(&node).is_some()
        {
            let gone = names(cluster.pods_on(&node));
            remove(cluster, gone);
        }
        // Most machines are well, and nothing is asked: then no pool is looked at.
        if self.pods.contains_key(WITHOUT_NODE)
            && self.nodes().next().is_none()
            && pool_pods::pools(cluster, now).is_empty()
        {
            self.pods.remove(WITHOUT_NODE);
            let gone = names(cluster.pods_without_node());
            remove(cluster, gone);
        }
    }

    /// Other entries of aws-auth make other identities: those that are gone are not kept.
    pub(super) fn forget_access(&mut self, cluster: &mut ClusterState) {
        for identity in std::mem::take(&mut self.access).into_keys() {
            cluster.forget_access(&identity);
        }
    }
}

type PodName = (Option<String>, String);

fn names<'p>(pods: impl Iterator<Item = &'p Pod>) -> Vec<PodName> {
    pods.map(|pod| (pod.metadata.namespace.as_deref().map(str::to_owned), pod.metadata.name.to_string())).collect()
}

fn remove(cluster: &mut ClusterState, pods: Vec<PodName>) {
    for (namespace, name) in pods {
        cluster.remove(Input::Pods, namespace.as_deref(), &name);
    }
}

/// Whether it is to be asked now, and what that means for the verdict.
fn ask<K: Ord>(asked: &mut BTreeMap<K, Asked>, what: K, now: DateTime<Utc>, fresh: TimeDelta) -> (bool, AnswerState) {
    let Some(before) = asked.get_mut(&what) else {
        asked.insert(what, Asked { at: now, answered: false });
        return (true, AnswerState::AwaitedUntil(now + ANSWER_WITHIN));
    };
    let good_until = before.at + if before.answered { fresh } else { ANSWER_WITHIN };
    if now >= good_until {
        before.at = now;
        return (true, AnswerState::GoodUntil(now + fresh));
    }
    (false, if before.answered { AnswerState::GoodUntil(good_until) } else { AnswerState::AwaitedUntil(good_until) })
}

fn fresh(waited: TimeDelta) -> TimeDelta {
    (waited / 8).clamp(FRESH, FRESH_AT_MOST)
}

/// Whether any rule that may know this stage reads pods.
fn reads_pods(case: &Case) -> bool {
    rules::of_stage(case.stage()).is_some_and(|of_stage| of_stage.reads(case.cluster).contains(&Input::Pods))
}
