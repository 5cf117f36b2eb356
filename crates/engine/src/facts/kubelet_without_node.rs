//! Kubelets that report under a name that no Node has, and the one among them that may be this machine's.

use crate::case::Case;
use crate::cluster_state::memo::Memo;
use crate::facts::names_with_ids::NamesWithIds;
use crate::objects::{Event, NodeClaim};
use crate::upstream::node_events;
use chrono::{DateTime, TimeDelta, Utc};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The kubelet's events are throttled to one in 300 s for each object; twice that without one, and it has stopped
/// trying.
/// Source: client-go v0.36.3 tools/record/events_cache.go `defaultSpamQPS`.
const STILL_TRYING: TimeDelta = TimeDelta::minutes(10);

/// What shows that a kubelet is that of this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attribution {
    /// Its name holds the instance's id.
    ByInstanceId,
    /// By time and by elimination: no other kubelet reports so, and no other machine waits that could be its.
    ByElimination,
    Unclear,
}

/// The kubelet that may be this machine's.
pub(crate) fn of_this_machine<'w>(
    case: &Case<'w>,
    launched: DateTime<Utc>,
) -> Option<(&'w str, &'w Event, Attribution)> {
    static TURNED_AWAY: Memo<TurnedAway> = Memo::new("kubelets that still try to register");
    let kubelets = case.cluster.once_at(&TURNED_AWAY, case.now, || TurnedAway::of(case));
    let attempt = |name: &str| {
        let of_name = case.cluster.events("Node", name);
        of_name.filter(|e| tries(case, e)).find(|e| first_seen(e).is_some_and(|at| at >= launched))
    };
    let instance = case.claim.and_then(NodeClaim::instance_id);
    let mut own = instance.into_iter().flat_map(|id| kubelets.by_id.holding(id));
    if let Some(event) = own.find_map(attempt) {
        return Some((&event.involved_object.name, event, Attribution::ByInstanceId));
    }
    // Another instance's id is not this one's.
    let (first, is_one) = kubelets.nameless_since(launched)?;
    let event = attempt(first)?;
    let alone = is_one && !others_wait(case, first_seen(event));
    let whose = if alone { Attribution::ByElimination } else { Attribution::Unclear };
    Some((&event.involved_object.name, event, whose))
}

/// Whether another machine, of whatever class, was launched by then and has not joined.
pub(crate) fn others_wait(case: &Case, by: Option<DateTime<Utc>>) -> bool {
    /// One of the two is another's than any that asks.
    static FIRST: Memo<Vec<(DateTime<Utc>, String)>> = Memo::new("the two that wait to join for longest");
    let first = case.cluster.once(&FIRST, "", || {
        let waiting = case.cluster.claims().filter(|claim| !claim.is_true("Registered"));
        let mut waiting: Vec<_> =
            waiting.filter_map(|claim| Some((claim.true_since("Launched")?, claim.name()))).collect();
        waiting.sort_unstable();
        waiting.into_iter().take(2).map(|(at, name)| (at, name.to_owned())).collect()
    });
    let own = case.claim.map(NodeClaim::name);
    first.iter().any(|(at, name)| Some(name.as_str()) != own && by.is_none_or(|by| *at <= by))
}

fn first_seen(event: &Event) -> Option<DateTime<Utc>> {
    event.first_timestamp.or(event.metadata.creation_timestamp).or(event.last_seen())
}

/// Whether a kubelet tells of its attempts to register, until now: it repeats itself with each.
fn tries(case: &Case, event: &Event) -> bool {
    event.reporter() == "kubelet"
        && event.reason.starts_with("NodeHas")
        && event.times() >= 3
        && event.last_seen().is_some_and(|at| case.now - at <= STILL_TRYING)
}

/// The names under which kubelets report until now, though no Node has or ever had them.
///
/// A kubelet writes events only as a node (`system:node:…` in `system:nodes`): network, CA and authentication are
/// right. A certificate request would say that its Node did exist.
/// Source: kubernetes v1.36.3 pkg/auth/authorizer/rbac/bootstrappolicy/policy.go `NodeRules`,
/// pkg/kubelet/kubelet_node_status.go.
struct TurnedAway {
    by_id: NamesWithIds,
    /// Those that begin with no instance's id, in order.
    nameless: Vec<String>,
    /// When the last of their attempts began, the latest first, each with the first two of `nameless` among those
    /// so far.
    since: Vec<(DateTime<Utc>, usize, Option<usize>)>,
}

impl TurnedAway {
    fn of(case: &Case) -> Self {
        let mut names: BTreeMap<&str, DateTime<Utc>> = BTreeMap::new();
        for (name, event) in case.cluster.kubelets_without_node().filter(|(_, event)| tries(case, event)) {
            if let Some(at) = first_seen(event) {
                let latest = names.entry(name).or_insert(at);
                *latest = at.max(*latest);
            }
        }
        if !names.is_empty() {
            let asked: BTreeSet<&str> =
                case.cluster.csrs().filter_map(|csr| csr.spec.username.strip_prefix("system:node:")).collect();
            let deleted = |name: &str| case.cluster.events("Node", name).any(node_events::deletes_node);
            names.retain(|name, _| !asked.contains(name) && !deleted(name));
        }
        let by_id = NamesWithIds::of(names.keys().copied());
        let (nameless, mut times): (Vec<String>, Vec<(DateTime<Utc>, usize)>) = names
            .into_iter()
            .filter(|(name, _)| !name.starts_with("i-"))
            .enumerate()
            .map(|(place, (name, at))| (name.to_owned(), (at, place)))
            .unzip();
        times.sort_unstable_by_key(|(at, place)| (Reverse(*at), *place));
        let mut since: Vec<(DateTime<Utc>, usize, Option<usize>)> = Vec::with_capacity(times.len());
        for (at, place) in times {
            since.push(match since.last() {
                None => (at, place, None),
                Some((_, first, _)) if place < *first => (at, place, Some(*first)),
                Some((_, first, second)) => (at, *first, Some(second.map_or(place, |second| second.min(place)))),
            });
        }
        Self { by_id, nameless, since }
    }

    /// The first of those that began an attempt since then, and whether it is the only one.
    fn nameless_since(&self, launched: DateTime<Utc>) -> Option<(&str, bool)> {
        let count = self.since.partition_point(|(at, ..)| *at >= launched);
        let (_, first, second) = self.since.get(count.checked_sub(1)?)?;
        Some((self.nameless.get(*first)?, second.is_none()))
    }
}
