//! Names by what they share: the Nodes of a providerID, the NodeClaims of a NodePool.

use crate::word::Word;
use std::collections::BTreeSet;

/// One flat set: most keys have a single name, and a set for each would cost more than what it holds.
#[derive(Debug, Default)]
pub struct Index(BTreeSet<(Word, Word)>);

impl Index {
    pub fn insert(&mut self, key: Word, name: Word) {
        self.0.insert((key, name));
    }

    pub fn remove(&mut self, key: Word, name: Word) {
        self.0.remove(&(key, name));
    }

    /// The names under a key, in order. It takes a word, not a text: the table of all words would be searched for it, and that takes the
    /// longer the larger the cluster is.
    pub fn under<'i>(&'i self, key: &Word) -> impl Iterator<Item = &'i Word> + use<'i> {
        let key = key.clone();
        self.0.range((key.clone(), Word::default())..).take_while(move |(k, _)| *k == key).map(|(_, name)| name)
    }
}
