//! Kubelets that report under a name that no Node has, and the one among them that may be this machine's.

use crate::case::{Case, stage};
use crate::objects::{Event, NodeClaim};
use chrono::{DateTime, TimeDelta, Utc};

/// The kubelet's events are throttled to one in 300 s for each object; twice that without one, and it has stopped
/// trying.
/// Source: client-go v0.36.3 tools/record/events_cache.go `defaultSpamQPS`.
const STILL_TRYING: TimeDelta = TimeDelta::minutes(10);

/// The kubelet that reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// Its name holds the instance's id.
    Own,
    /// By time and by elimination: no other kubelet reports so, and no other machine waits that could be its.
    NobodyElses,
    Somebodys,
}

/// The kubelet that may be this machine's.
pub(crate) fn of_this_machine<'w>(case: &Case<'w>, launched: DateTime<Utc>) -> Option<(&'w str, &'w Event, Whose)> {
    let kubelets = turned_away(case, launched);
    let is_own = |name: &str| case.claim.and_then(NodeClaim::instance_id).is_some_and(|id| name.contains(id));
    if let Some(&(name, event)) = kubelets.iter().find(|(name, _)| is_own(name)) {
        return Some((name, event, Whose::Own));
    }
    // Another instance's id is not this one's.
    let mut nameless = kubelets.into_iter().filter(|(name, _)| !name.starts_with("i-"));
    let (name, event) = nameless.next()?;
    let alone = nameless.next().is_none() && !others_wait(case, first_seen(event));
    Some((name, event, if alone { Whose::NobodyElses } else { Whose::Somebodys }))
}

/// Whether another machine, of whatever class, was launched by then and has not joined.
pub(crate) fn others_wait(case: &Case, by: Option<DateTime<Utc>>) -> bool {
    let waits = |c: &NodeClaim| {
        !c.is_true("Registered") && c.true_since("Launched").is_some_and(|at| by.is_none_or(|by| at <= by))
    };
    case.cluster.claims().any(|claim| waits(claim) && Some(claim.name()) != case.claim.map(NodeClaim::name))
}

fn first_seen(event: &Event) -> Option<DateTime<Utc>> {
    event.first_timestamp.or(event.metadata.creation_timestamp).or(event.last_seen())
}

/// A kubelet that reports, since the launch and until now, under a name that no Node has or ever had.
///
/// It writes events only as a node (`system:node:…` in `system:nodes`): network, CA and authentication are right. A
/// certificate request would say that its Node did exist.
/// Source: kubernetes v1.36.3 pkg/auth/authorizer/rbac/bootstrappolicy/policy.go `NodeRules`,
/// pkg/kubelet/kubelet_node_status.go.
fn turned_away<'w>(case: &Case<'w>, launched: DateTime<Utc>) -> Vec<(&'w str, &'w Event)> {
    let mut names: Vec<(&str, &Event)> = Vec::new();
    for (name, event) in case.cluster.kubelets_without_node() {
        let since_launch = first_seen(event).is_some_and(|at| at >= launched);
        let still = event.last_seen().is_some_and(|at| case.now - at <= STILL_TRYING);
        // Repeated on every attempt to register.
        let attempt = event.reason.starts_with("NodeHas") && event.times() >= 3;
        if since_launch && still && attempt && names.last().is_none_or(|(last, _)| *last != name) {
            names.push((name, event));
        }
    }
    let deleted = |name: &str| case.cluster.events("Node", name).any(stage::deletes_node);
    names.retain(|(name, _)| {
        !deleted(name) && !case.cluster.csrs().any(|c| c.spec.username == format!("system:node:{name}"))
    });
    names
}
