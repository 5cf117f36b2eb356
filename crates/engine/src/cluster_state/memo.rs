//! What many judgements ask of all objects: worked out when first asked for, forgotten with the next object that says something new.
//!
//! Where all machines are judged, the cluster does not change: it is looked through once, not for each of them.

use super::ClusterState;
use crate::objects::intern::Interned;
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Derived {
    left_over: OnceLock<Vec<Interned>>,
    without_node: OnceLock<Vec<String>>,
    answers: Mutex<BTreeMap<TypeId, BTreeMap<String, Answer>>>,
}

type Answer = Arc<dyn Any + Send + Sync>;

impl ClusterState {
    /// What a rule works out of many objects, once for all machines that ask until something changes. The type of the answer says what the
    /// question is, `about` what it is asked of. It must not depend on the machine that happens to ask first.
    pub fn once<T: Send + Sync + 'static>(&self, about: &str, work_out: impl FnOnce() -> T) -> Arc<T> {
        let answers = || self.derived.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers().get(&TypeId::of::<T>()).and_then(|of_type| of_type.get(about)).cloned();
        if let Some(answer) = known.and_then(|answer| answer.downcast::<T>().ok()) {
            return answer;
        }
        // The lock is not held meanwhile: one answer may need another.
        let answer = Arc::new(work_out());
        answers().entry(TypeId::of::<T>()).or_default().insert(about.to_owned(), Arc::clone(&answer) as Answer);
        answer
    }

    /// Names of the Nodes that Karpenter made and that no NodeClaim has.
    pub(super) fn left_over(&self) -> &[Interned] {
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
