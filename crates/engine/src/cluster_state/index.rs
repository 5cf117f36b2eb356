//! Names by what they share: the Nodes of a providerID, the NodeClaims of a NodePool.

use crate::objects::intern::Interned;
use std::collections::BTreeSet;
use std::collections::hash_map::{Entry, HashMap};

/// The names under each key, in order.
#[derive(Debug, Default)]
pub struct Index(HashMap<Interned, Names>);

/// Most keys have a single name, and a set for each would cost more than what it holds.
#[derive(Debug)]
enum Names {
    One(Interned),
    Many(BTreeSet<Interned>),
}

impl Index {
    pub fn insert(&mut self, key: Interned, name: Interned) {
        match self.0.entry(key) {
            Entry::Vacant(vacant) => {
                vacant.insert(Names::One(name));
            }
            Entry::Occupied(mut occupied) => match occupied.get_mut() {
                Names::Many(names) => {
                    names.insert(name);
                }
                Names::One(one) => {
                    let names = BTreeSet::from([std::mem::take(one), name]);
                    occupied.insert(Names::Many(names));
                }
            },
        }
    }

    pub fn remove(&mut self, key: &str, name: &Interned) {
        let last = match self.0.get_mut(key) {
            None => false,
            Some(Names::One(one)) => one == name,
            Some(Names::Many(names)) => {
                names.remove(name);
                names.is_empty()
            }
        };
        if last {
            self.0.remove(key);
        }
    }

    pub fn under(&self, key: &str) -> impl Iterator<Item = &Interned> + use<'_> {
        let (one, many) = match self.0.get(key) {
            None => (None, None),
            Some(Names::One(one)) => (Some(one), None),
            Some(Names::Many(names)) => (None, Some(names)),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }
}
