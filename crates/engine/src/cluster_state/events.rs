//! Events by what they are about, kind and name: looked up for every machine at every judgement, so without an
//! allocation.

use super::{Key, key_of};
use crate::objects::Event;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

/// What kubelets say about pods stands under this kind and the name of the Node. No kind of object has this name.
pub(super) const KUBELET_ABOUT_PODS: &str = "pods on";

type ByName = BTreeMap<String, BTreeMap<Key, Event>>;

#[derive(Debug, Default)]
pub(super) struct Events {
    /// By kind and name of what they are about, then by their own namespace and name.
    filed: BTreeMap<String, ByName>,
    /// Where an event is filed, so that its deletion finds it.
    places: BTreeMap<Key, Key>,
}

impl Events {
    /// Keeps an event and says under what kind and name.
    pub(super) fn insert(&mut self, event: Event) -> Key {
        let (place, key) = (place(&event), key_of(&event.metadata));
        self.places.insert(key.clone(), place.clone());
        self.filed.entry(place.0.clone()).or_default().entry(place.1.clone()).or_default().insert(key, event);
        place
    }

    pub(super) fn remove(&mut self, key: &Key) {
        let Some((kind, name)) = self.places.remove(key) else { return };
        let Some(of_kind) = self.filed.get_mut(&kind) else { return };
        if let btree_map::Entry::Occupied(mut of_name) = of_kind.entry(name) {
            of_name.get_mut().remove(key);
            if of_name.get().is_empty() {
                of_name.remove();
            }
        }
    }

    pub(super) fn about(&self, kind: &str, name: &str) -> impl Iterator<Item = &Event> {
        self.filed.get(kind).and_then(|of_kind| of_kind.get(name)).into_iter().flat_map(BTreeMap::values)
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

/// Under what an event is filed: what it is about; for what a kubelet says about pods, its Node.
fn place(event: &Event) -> Key {
    let about = &event.involved_object;
    match about.kind.as_str() {
        "Pod" if event.reporter() == "kubelet" && !event.source.host.is_empty() => {
            (KUBELET_ABOUT_PODS.to_owned(), event.source.host.clone())
        }
        kind => (kind.to_owned(), about.name.clone()),
    }
}
