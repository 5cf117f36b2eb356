//! The node class and NodePool text that a machine was launched with. Both may have changed since.
//!
//! Karpenter writes the hash of the text at launch on the NodeClaim. The state keeps the text for a hash for as long as
//! a NodeClaim has that hash.

use super::{ClassFacts, ClusterState};
use crate::objects::intern::Interned;
use crate::objects::{Meta, NodeClaim, NodeClass, NodeClassRef, NodePool};
use crate::upstream::text_hash::{HashKey, TextHash};
use std::collections::{BTreeMap, BTreeSet};

/// A node class or a NodePool, for a machine.
#[derive(Debug)]
pub enum AtLaunch<'w, T> {
    /// The present text. Nothing shows that it changed since the launch.
    Present(&'w T),
    /// The text at launch. The object has changed since, or is gone.
    Earlier(&'w T),
    /// The present text. It changed since the launch, and the text at launch is not known.
    Lost(&'w T),
}

impl<T> Clone for AtLaunch<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for AtLaunch<'_, T> {}

impl<'w, T> AtLaunch<'w, T> {
    /// The text that the machine was launched with, if it is known.
    pub const fn known(self) -> Option<&'w T> {
        match self {
            Self::Present(object) | Self::Earlier(object) => Some(object),
            Self::Lost(_) => None,
        }
    }

    /// The present object, if the text at launch is not known.
    pub const fn lost(self) -> Option<&'w T> {
        if let Self::Lost(object) = self { Some(object) } else { None }
    }

    /// The object, for its name only.
    pub const fn any(self) -> &'w T {
        match self {
            Self::Present(object) | Self::Earlier(object) | Self::Lost(object) => object,
        }
    }
}

/// By kind and name; NodePools have no kind here.
type Name = (Interned, Interned);

/// The earlier texts of all objects of a kind.
#[derive(Debug)]
pub(super) struct Texts<T>(BTreeMap<Name, OfName<T>>);

#[derive(Debug)]
struct OfName<T> {
    /// How many NodeClaims have each hash.
    in_use: BTreeMap<HashKey, u32>,
    earlier: BTreeMap<HashKey, T>,
    /// The last that was replaced: a NodeClaim that was just made with it may not have been seen yet.
    last: Option<HashKey>,
}

impl<T> Default for Texts<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Default for OfName<T> {
    fn default() -> Self {
        Self { in_use: BTreeMap::new(), earlier: BTreeMap::new(), last: None }
    }
}

impl<T> Texts<T> {
    fn count(&mut self, name: Name, hash: HashKey) {
        if !hash.is_none() {
            *self.0.entry(name).or_default().in_use.entry(hash).or_default() += 1;
        }
    }

    fn uncount(&mut self, name: &Name, hash: &HashKey) {
        let Some(of_name) = self.0.get_mut(name) else { return };
        let Some(n) = of_name.in_use.get_mut(hash) else { return };
        *n = n.saturating_sub(1);
        if *n == 0 {
            of_name.in_use.remove(hash);
            of_name.forget();
        }
        if of_name.in_use.is_empty() && of_name.earlier.is_empty() {
            self.0.remove(name);
        }
    }

    fn earlier(&self, name: &Name, hash: TextHash) -> Option<&T> {
        let of_name = self.0.get(name).filter(|of_name| !of_name.earlier.is_empty())?;
        of_name.earlier.get(&hash.key())
    }

    /// Keeps what an object said until now, where that has a hash.
    ///
    /// Karpenter writes the new hash only after it has seen the new text. Until then the hash is that of the text
    /// before.
    fn replace(
        &mut self,
        name: &Name,
        (hash, old): (HashKey, T),
        new: Option<(HashKey, &T)>,
        same: fn(&T, &T) -> bool,
    ) {
        let is_same = new.as_ref().is_some_and(|(_, new)| same(&old, new));
        let is_same_hash = new.as_ref().is_some_and(|(new, _)| *new == hash);
        let is_reckoned_anew = new.as_ref().is_some_and(|(new, _)| new.version() != hash.version());
        let is_kept = !hash.is_none() && !(is_same && (is_same_hash || is_reckoned_anew));
        if !is_kept && !self.0.contains_key(name) {
            return;
        }
        let of_name = self.0.entry(name.clone()).or_default();
        if is_kept && !of_name.earlier.contains_key(&hash) {
            of_name.earlier.insert(hash.clone(), old);
            of_name.last = Some(hash);
        }
        match new {
            // It says so again.
            Some((hash, new)) if of_name.earlier.get(&hash).is_some_and(|earlier| same(earlier, new)) => {
                of_name.earlier.remove(&hash);
            }
            Some(_) => {}
            None => of_name.last = None,
        }
        of_name.forget();
        if of_name.in_use.is_empty() && of_name.earlier.is_empty() {
            self.0.remove(name);
        }
    }
}

impl<T> OfName<T> {
    fn forget(&mut self) {
        let Self { in_use, earlier, last } = self;
        earlier.retain(|hash, _| last.as_ref() == Some(hash) || in_use.contains_key(hash));
    }
}

impl ClusterState {
    /// The node class that a machine was launched with. `machine` is its NodeClaim, else its Node.
    pub fn class_at_launch(&self, class: &NodeClassRef, machine: &Meta) -> Option<AtLaunch<'_, ClassFacts>> {
        let now = self.class(&class.kind, &class.name).map(|facts| (facts, &facts.class.metadata));
        let name = (class.kind.clone(), class.name.clone());
        at_launch(now, machine, TextHash::of_class, &self.class_texts, &name)
    }

    /// The NodePool that a machine was launched from.
    pub fn pool_at_launch(&self, pool: &str, machine: &Meta) -> Option<AtLaunch<'_, NodePool>> {
        let now = self.pool(pool).map(|pool| (pool, &pool.metadata));
        let name = (Interned::default(), pool.into());
        at_launch(now, machine, TextHash::of_pool, &self.pool_texts, &name)
    }

    /// Whether the hashes of the machines of a node class can be compared: they are all of one version.
    pub fn has_one_hash_version(&self, kind: &str, name: &str) -> bool {
        let of_name = self.class_texts.0.get(&(kind.into(), name.into()));
        let versions = of_name.map(|of_name| of_name.in_use.keys().map(HashKey::version).collect::<BTreeSet<_>>());
        versions.is_none_or(|versions| versions.len() < 2)
    }

    /// How many texts are kept that are not the present ones.
    #[cfg(test)]
    pub(crate) fn earlier_texts(&self) -> usize {
        let of_classes = self.class_texts.0.values().map(|of_name| of_name.earlier.len());
        of_classes.chain(self.pool_texts.0.values().map(|of_name| of_name.earlier.len())).sum()
    }

    pub(super) fn put_class(&mut self, facts: ClassFacts) {
        let (kind, name) = (facts.class.kind.clone(), facts.class.metadata.name.clone());
        let of_kind = self.classes.entry(kind.clone()).or_default();
        let old = of_kind.insert(name.to_string(), facts);
        let new = of_kind.get(&*name);
        if let Some(old) = old {
            let (hash, new) = (class_hash(&old), new.map(|new| (class_hash(new), new)));
            self.class_texts.replace(&(kind.as_str().into(), name), (hash, old), new, is_same_class);
        }
    }

    pub(super) fn drop_class(&mut self, kind: &str, name: &str) {
        if let Some(old) = self.classes.get_mut(kind).and_then(|of_kind| of_kind.remove(name)) {
            let hash = class_hash(&old);
            self.class_texts.replace(&(kind.into(), name.into()), (hash, old), None, is_same_class);
        }
    }

    pub(super) fn put_pool(&mut self, pool: NodePool) {
        let name = pool.metadata.name.clone();
        let old = self.pools.insert(name.to_string(), pool);
        let new = self.pools.get(&*name);
        if let Some(old) = old {
            let hash = HashKey::of_pool(&old.metadata);
            let new = new.map(|new| (HashKey::of_pool(&new.metadata), new));
            self.pool_texts.replace(&(Interned::default(), name), (hash, old), new, NodePool::has_same_template);
        }
    }

    pub(super) fn drop_pool(&mut self, name: &str) {
        if let Some(old) = self.pools.remove(name) {
            let hash = HashKey::of_pool(&old.metadata);
            self.pool_texts.replace(
                &(Interned::default(), name.into()),
                (hash, old),
                None,
                NodePool::has_same_template,
            );
        }
    }

    /// Counts a claim among those that were launched with its texts.
    pub(super) fn count_texts(&mut self, claim: &NodeClaim) {
        let (class, pool) = names_of(claim);
        self.class_texts.count(class, HashKey::of_class(&claim.metadata));
        if let Some(pool) = pool {
            self.pool_texts.count(pool, HashKey::of_pool(&claim.metadata));
        }
    }

    pub(super) fn uncount_texts(&mut self, claim: &NodeClaim) {
        let (class, pool) = names_of(claim);
        self.class_texts.uncount(&class, &HashKey::of_class(&claim.metadata));
        if let Some(pool) = pool {
            self.pool_texts.uncount(&pool, &HashKey::of_pool(&claim.metadata));
        }
    }
}

fn at_launch<'w, T>(
    now: Option<(&'w T, &'w Meta)>,
    machine: &Meta,
    hash: fn(&Meta) -> Option<TextHash<'_>>,
    texts: &'w Texts<T>,
    name: &Name,
) -> Option<AtLaunch<'w, T>> {
    let Some(launched) = hash(machine) else { return now.map(|(now, _)| AtLaunch::Present(now)) };
    let hash_now = now.and_then(|(_, meta)| hash(meta));
    // Until Karpenter has reckoned the hash of a new text, that of the text before stands beside it. What no hash
    // covers may differ for good, and machines that were made since have it.
    let is_of_before = hash_now != Some(launched)
        || now
            .and_then(|(_, meta)| meta.last_written())
            .is_some_and(|written| machine.creation_timestamp <= Some(written.at));
    if let Some(earlier) = texts.earlier(name, launched).filter(|_| is_of_before) {
        return Some(AtLaunch::Earlier(earlier));
    }
    let (now, _) = now?;
    let is_changed = hash_now.is_some_and(|hash| launched.differs(hash));
    Some(if is_changed { AtLaunch::Lost(now) } else { AtLaunch::Present(now) })
}

fn class_hash(facts: &ClassFacts) -> HashKey {
    HashKey::of_class(&facts.class.metadata)
}

fn is_same_class(one: &ClassFacts, other: &ClassFacts) -> bool {
    NodeClass::has_same_text(&one.class, &other.class)
}

fn names_of(claim: &NodeClaim) -> (Name, Option<Name>) {
    let class = &claim.spec.node_class_ref;
    let pool = claim.node_pool().map(|pool| (Interned::default(), pool.into()));
    ((class.kind.clone(), class.name.clone()), pool)
}
