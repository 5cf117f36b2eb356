//! Events by what they are about, kind and name: looked up for every machine at every judgement, so without an
//! allocation.

use super::{Key, key_of};
use crate::objects::{Event, Meta};
use crate::upstream::csi;
use crate::upstream::unplaced::{PlacementObstacle, refusals};
use chrono::TimeDelta;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

/// Events of kubelets about pods are filed under this kind and the name of the Node. No real kind has this name.
pub(super) const KUBELET_ABOUT_PODS: &str = "pods on";

/// Events of provisioners about claims for which they cannot create a volume on a Node are filed under this kind and
/// the name of the Node.
pub(super) const VOLUMES_FOR: &str = "volumes for";

type ByName = BTreeMap<String, BTreeMap<Key, Event>>;

#[derive(Debug, Default)]
pub(super) struct Events {
    /// By kind and name of what they are about, then by their own namespace and name.
    filed: BTreeMap<String, ByName>,
    /// The kind and name that each Event is filed under, to find it when it is deleted.
    places: BTreeMap<Key, Key>,
    /// By NodePool, those about pods that it could not take, each with the pod's name.
    unplaced: BTreeMap<String, BTreeMap<Key, String>>,
}

impl Events {
    /// Keeps an event and says under what kind and name.
    pub(super) fn insert(&mut self, event: Event) -> Key {
        let (place, key) = (place(&event), key_of(&event.metadata));
        self.places.insert(key.clone(), place.clone());
        for (pool, _) in refusals(&event) {
            self.unplaced.entry(pool.to_owned()).or_default().insert(key.clone(), place.1.clone());
        }
        self.filed.entry(place.0.clone()).or_default().entry(place.1.clone()).or_default().insert(key, event);
        place
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some((kind, name)) = self.places.remove(key) else { return };
        let Some(of_kind) = self.filed.get_mut(&kind) else { return };
        if let btree_map::Entry::Occupied(mut of_name) = of_kind.entry(name) {
            for (pool, _) in of_name.get_mut().remove(key).iter().flat_map(refusals) {
                if let Some(of_pool) = self.unplaced.get_mut(pool) {
                    of_pool.remove(key);
                }
            }
            if of_name.get().is_empty() {
                of_name.remove();
            }
        }
    }

    pub(super) fn about(&self, kind: &str, name: &str) -> impl Iterator<Item = &Event> {
        self.filed.get(kind).and_then(|of_kind| of_kind.get(name)).into_iter().flat_map(BTreeMap::values)
    }

    /// Events in which Karpenter says why the NodePool could not take a pod. An Event that was rewritten since may no
    /// longer name it.
    pub(super) fn unplaced(&self, pool: &str) -> impl Iterator<Item = (&Event, PlacementObstacle)> {
        let keys = self.unplaced.get(pool).into_iter().flatten();
        let events = keys.filter_map(|(key, pod)| self.filed.get("Pod")?.get(pod)?.get(key));
        events.flat_map(move |event| {
            refusals(event).filter(move |(named, _)| *named == pool).map(move |(_, r)| (event, r))
        })
    }

    /// The NodePools that [`Self::unplaced`] may know of.
    pub(super) fn pools_with_unplaced(&self) -> impl Iterator<Item = &str> {
        self.unplaced.keys().map(String::as_str)
    }

    /// Every name of a kind that has events, in order.
    pub(super) fn names_of_kind(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.filed.get(kind).into_iter().flat_map(BTreeMap::keys).map(String::as_str)
    }

    /// Those of a kind whose name begins so.
    pub(super) fn with_prefix<'e>(
        &'e self,
        kind: &str,
        prefix: &str,
    ) -> impl Iterator<Item = (&'e str, &'e Event)> + use<'e> {
        let range =
            self.filed.get(kind).map(|names| names.range::<str, _>((Bound::Included(prefix), Bound::Unbounded)));
        let prefix = prefix.to_owned();
        let named = range.into_iter().flatten().take_while(move |(name, _)| name.starts_with(&prefix));
        named.flat_map(|(name, events)| events.values().map(move |event| (name.as_str(), event)))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Event> {
        self.filed.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }
}

/// Whether an event that names this object is about it, and not about an earlier one of its name: names of Nodes come
/// from addresses, which EC2 hands out again.
///
/// A UID tells, where both are known. Kubelets put the name of their Node in its place, and report while they are still
/// registering it; so there the times have to.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet.go `NewMainKubelet` (nodeRef).
pub(super) fn is_about(event: &Event, object: &Meta) -> bool {
    const BEFORE_IT_IS_THERE: TimeDelta = TimeDelta::minutes(2);
    let uid = &event.involved_object.uid;
    if !uid.is_empty() && *uid != event.involved_object.name && !object.uid.is_empty() {
        return *uid == *object.uid;
    }
    let times = object.creation_timestamp.zip(event.last_seen());
    times.is_none_or(|(created, seen)| created - seen <= BEFORE_IT_IS_THERE)
}

/// The kind and name that an Event is filed under: its object, or the Node if a kubelet reports about a pod.
fn place(event: &Event) -> Key {
    let about = &event.involved_object;
    match about.kind.as_str() {
        "Pod" if event.reporter() == "kubelet" && !event.source.host.is_empty() => {
            (KUBELET_ABOUT_PODS.to_owned(), event.source.host.clone())
        }
        "PersistentVolumeClaim" if let Some(node) = csi::unprovisioned_on(event) => {
            (VOLUMES_FOR.to_owned(), node.to_owned())
        }
        kind => (kind.to_owned(), about.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::is_about;
    use crate::objects::{Event, Meta};
    use serde_json::{Value, from_value, json};

    fn is(uid: &str, seen: &str, object: Value) -> bool {
        let about = json!({ "kind": "Node", "name": "ip-10-0-0-1", "uid": uid });
        let event: Event = from_value(json!({ "involvedObject": about, "lastTimestamp": seen })).unwrap();
        is_about(&event, &from_value::<Meta>(object).unwrap())
    }

    #[test]
    fn an_event_of_an_earlier_object_of_the_name_is_not_about_the_present_one() {
        let node = || json!({ "name": "ip-10-0-0-1", "uid": "2", "creationTimestamp": "2026-01-15T12:00:00Z" });
        let (long_before, before, after) = ("2026-01-15T11:00:00Z", "2026-01-15T11:59:30Z", "2026-01-15T12:05:00Z");
        assert!(is("2", after, node()) && is("2", long_before, node()));
        assert!(!is("1", after, node()) && !is("1", before, node()));
        // Nothing but the time tells of a kubelet's, of what names no UID, and of an object cut by hand.
        for uid in ["ip-10-0-0-1", ""] {
            assert!(is(uid, after, node()) && is(uid, before, node()) && !is(uid, long_before, node()));
        }
        let cut = json!({ "name": "ip-10-0-0-1", "creationTimestamp": "2026-01-15T12:00:00Z" });
        assert!(is("2", after, cut.clone()) && !is("1", long_before, cut));
        assert!(is("1", long_before, json!({ "name": "ip-10-0-0-1" })));
    }
}
