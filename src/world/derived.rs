//! What many judgements ask of all objects: worked out when first asked for, forgotten with the next change.
//!
//! Where all machines are judged, the world does not change: it is looked through once, not for each of them.

use super::World;
use crate::word::Word;
use std::sync::OnceLock;

#[derive(Debug, Default)]
pub(super) struct Derived {
    left_over: OnceLock<Vec<Word>>,
    without_node: OnceLock<Vec<String>>,
}

impl World {
    /// Names of the Nodes that Karpenter made and that no NodeClaim has.
    pub(super) fn left_over(&self) -> &[Word] {
        self.derived.left_over.get_or_init(|| {
            let made = self.nodes().filter(|n| !n.spec.provider_id.is_empty() && n.metadata.label("karpenter.sh/nodepool").is_some());
            made.filter(|n| self.claim_of_node(n).is_none()).map(|n| n.metadata.name.clone()).collect()
        })
    }

    /// Names of Nodes that do not exist and have events.
    pub(super) fn reported_without_node(&self) -> &[String] {
        self.derived.without_node.get_or_init(|| {
            let names = self.events.names_of_kind("Node");
            names.filter(|name| !self.nodes.contains_key(*name)).map(str::to_owned).collect()
        })
    }
}
