//! The keys that a watch has seen. kube's watcher says nothing about what vanished while it was not watching: comparing
//! the next full list with these keys does.

use super::Key;
use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Known {
    now: BTreeSet<Key>,
    /// The keys before the list that is under way.
    before: BTreeSet<Key>,
}

impl Known {
    /// The names of what is there.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.now.iter().map(|(_, name)| name.into()).collect()
    }

    /// A full list begins. One that broke off is forgotten, what it showed is not.
    pub(super) fn begin(&mut self) {
        self.before.append(&mut self.now);
    }

    pub(super) fn seen(&mut self, key: Key) {
        self.now.insert(key);
    }

    pub(super) fn lost(&mut self, key: &Key) {
        self.now.remove(key);
    }

    /// The list is complete: what was there before and is not in it.
    pub(super) fn vanished(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.before).difference(&self.now).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        (None, name.into())
    }

    #[test]
    fn what_a_relist_does_not_show_has_vanished() {
        let mut known = Known::default();
        known.begin();
        known.seen(key("a"));
        known.seen(key("b"));
        assert_eq!(known.vanished(), []);
        known.seen(key("c"));
        known.lost(&key("a"));
        known.begin();
        known.seen(key("c"));
        assert_eq!(known.vanished(), [key("b")]);
    }

    #[test]
    fn a_list_that_broke_off_hides_nothing() {
        let mut known = Known::default();
        known.begin();
        known.seen(key("a"));
        known.vanished();
        known.begin();
        known.seen(key("b"));
        known.begin();
        known.seen(key("c"));
        assert_eq!(known.vanished(), [key("a"), key("b")]);
    }
}
