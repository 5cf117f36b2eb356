//! Decides which additional kinds of node class to watch: those that at least one NodePool references.

use engine::objects::{OTHER_KINDS, is_of_other_provider};
use std::collections::{BTreeMap, BTreeSet};

/// Group and kind.
pub(super) type Kind = (String, String);

/// The kinds that the NodePools reference.
#[derive(Debug, Default)]
pub(super) struct Demand {
    by_pool: BTreeMap<String, Kind>,
    watched: BTreeSet<Kind>,
}

/// The watches to start and to stop.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Turn {
    pub begin: Vec<Kind>,
    pub end: Vec<Kind>,
}

impl Demand {
    /// A NodePool references this kind. Other kinds are ignored.
    pub(super) fn name(&mut self, pool: &str, group: &str, kind: &str) -> Turn {
        if is_of_other_provider(group, kind) {
            self.by_pool.insert(pool.to_owned(), (group.to_owned(), kind.to_owned()));
        } else {
            self.by_pool.remove(pool);
        }
        self.turn()
    }

    /// The NodePool is gone.
    pub(super) fn pool_gone(&mut self, pool: &str) -> Turn {
        self.by_pool.remove(pool);
        self.turn()
    }

    pub(super) fn watches(&self, group: &str, kind: &str) -> bool {
        self.watched.iter().any(|(own, of)| own == group && of == kind)
    }

    fn turn(&mut self) -> Turn {
        let named: BTreeSet<&Kind> = self.by_pool.values().collect();
        let end: Vec<Kind> = self.watched.iter().filter(|kind| !named.contains(kind)).cloned().collect();
        self.watched.retain(|kind| named.contains(kind));
        let mut begin = Vec::new();
        for kind in named {
            // Classes are known by kind and name: two groups with one kind would take each other's place.
            let is_taken = self.watched.iter().any(|(_, of)| *of == kind.1);
            if !is_taken && self.watched.len() < OTHER_KINDS {
                self.watched.insert(kind.clone());
                begin.push(kind.clone());
            }
        }
        Turn { begin, end }
    }
}

#[cfg(test)]
mod tests {
    use super::{Demand, OTHER_KINDS, Turn};

    fn kind(group: &str, kind: &str) -> (String, String) {
        (group.to_owned(), kind.to_owned())
    }

    #[test]
    fn a_kind_is_watched_from_the_first_nodepool_that_names_it_to_the_last() {
        let mut demand = Demand::default();
        let aks = || kind("karpenter.azure.com", "AKSNodeClass");
        let begun = demand.name("a", "karpenter.azure.com", "AKSNodeClass");
        assert_eq!(begun, Turn { begin: vec![aks()], end: Vec::new() });
        assert_eq!(demand.name("b", "karpenter.azure.com", "AKSNodeClass"), Turn::default());
        assert_eq!(demand.pool_gone("a"), Turn::default());
        // It names another kind now.
        let turn = demand.name("b", "eks.amazonaws.com", "NodeClass");
        assert_eq!(turn, Turn { begin: vec![kind("eks.amazonaws.com", "NodeClass")], end: vec![aks()] });
        assert_eq!(demand.pool_gone("b").end, [kind("eks.amazonaws.com", "NodeClass")]);
        assert!(!demand.watches("eks.amazonaws.com", "NodeClass"));
    }

    #[test]
    fn what_is_no_node_class_is_not_watched() {
        let mut demand = Demand::default();
        for (group, kind) in [
            ("", "Pod"),
            ("apps", "Deployment"),
            ("karpenter.sh", "NodeClaim"),
            ("karpenter.sh", "NodePool"),
            ("karpenter.sh", "FakeNodeClass"),
            ("nodewhy.dev", "NodeDiagnosis"),
            ("nodewhy.dev", "NodeClass"),
            ("other.example", "NodeClass"),
            ("other.example", "EC2NodeClass"),
            ("karpenter.k8s.aws", "EC2NodeClass"),
            ("storage.k8s.io", "StorageClass"),
            ("", ""),
        ] {
            assert_eq!(demand.name("pool", group, kind), Turn::default(), "{kind}.{group}");
        }
    }

    #[test]
    fn few_kinds_are_watched_and_the_next_one_when_there_is_room() {
        let mut demand = Demand::default();
        let begun: usize = (0..200)
            .map(|n| demand.name(&format!("pool-{n:03}"), "example.com", &format!("Kind{n:03}NodeClass")).begin.len())
            .sum();
        assert_eq!(begun, OTHER_KINDS);
        let turn = demand.pool_gone("pool-000");
        assert_eq!(turn.end, [kind("example.com", "Kind000NodeClass")]);
        assert_eq!(turn.begin, [kind("example.com", &format!("Kind{OTHER_KINDS:03}NodeClass"))]);
    }

    #[test]
    fn a_kind_of_two_groups_is_watched_in_one() {
        let mut demand = Demand::default();
        assert_eq!(demand.name("a", "one.example", "RackNodeClass").begin.len(), 1);
        assert_eq!(demand.name("b", "two.example", "RackNodeClass"), Turn::default());
        let turn = demand.pool_gone("a");
        assert_eq!(turn.begin, [kind("two.example", "RackNodeClass")]);
    }
}
