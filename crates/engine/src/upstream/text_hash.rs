//! The hashes by which Karpenter detects that a node class or a NodePool has changed since a node was launched.
//!
//! Karpenter writes the hash of the present text on the class and the NodePool, and that of the launch on the
//! NodeClaim. Registration copies the latter to the Node.
//! Source: core pkg/controllers/nodeclaim/lifecycle/registration.go `syncNode` (v1.14.3).

use super::karpenter::{CLASS_HASH, CLASS_HASH_VERSION, POOL_HASH, POOL_HASH_VERSION};
use crate::objects::Meta;
use crate::objects::intern::Interned;
use std::fmt;

/// A hash, and the version of the hash function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextHash<'o> {
    hash: &'o str,
    version: Option<&'o str>,
}

/// A hash as a map key. Both parts are empty if the object has no hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct HashKey {
    hash: Interned,
    version: Interned,
}

impl TextHash<'_> {
    pub fn of_class(meta: &Meta) -> Option<TextHash<'_>> {
        of(meta, CLASS_HASH, CLASS_HASH_VERSION)
    }

    pub fn of_pool(meta: &Meta) -> Option<TextHash<'_>> {
        of(meta, POOL_HASH, POOL_HASH_VERSION)
    }

    /// Whether the two are of different texts. Hashes of different versions say nothing of each other.
    pub fn differs(self, other: Self) -> bool {
        self.version == other.version && self.hash != other.hash
    }

    pub fn key(self) -> HashKey {
        HashKey { hash: self.hash.into(), version: self.version.unwrap_or_default().into() }
    }
}

fn of<'m>(meta: &'m Meta, hash: &str, version: &str) -> Option<TextHash<'m>> {
    let hash = meta.annotation(hash).filter(|hash| !hash.is_empty())?;
    Some(TextHash { hash, version: meta.annotation(version) })
}

impl HashKey {
    /// The hash of the node class that a node was launched with.
    pub fn of_class(meta: &Meta) -> Self {
        TextHash::of_class(meta).map(TextHash::key).unwrap_or_default()
    }

    pub fn of_pool(meta: &Meta) -> Self {
        TextHash::of_pool(meta).map(TextHash::key).unwrap_or_default()
    }

    pub fn is_none(&self) -> bool {
        self.hash.is_empty()
    }

    pub const fn version(&self) -> &Interned {
        &self.version
    }
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.hash, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::TextHash;

    const fn hash<'h>(hash: &'h str, version: Option<&'h str>) -> TextHash<'h> {
        TextHash { hash, version }
    }

    #[test]
    fn hashes_of_different_versions_say_nothing_of_each_other() {
        assert!(hash("111", Some("v5")).differs(hash("222", Some("v5"))));
        assert!(hash("111", None).differs(hash("222", None)));
        assert!(!hash("111", Some("v5")).differs(hash("111", Some("v5"))));
        assert!(!hash("111", Some("v5")).differs(hash("222", Some("v6"))));
        assert!(!hash("111", None).differs(hash("222", Some("v6"))));
    }
}
