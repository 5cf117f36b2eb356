//! Answers that many judgements need about all objects. Each is computed at the first request and forgotten at the next
//! change.
//!
//! While all machines are judged, the cluster does not change. Each question then costs one pass, not one for each
//! machine.

use super::ClusterState;
use super::reads::Inputs;
use crate::objects::intern::Interned;
use chrono::{DateTime, Utc};
use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A question whose answer is kept. Each static is its own question, even if two have the same type of answer.
#[derive(Debug)]
pub struct Memo<T> {
    name: &'static str,
    answer: PhantomData<fn() -> T>,
}

impl<T> Memo<T> {
    pub const fn new(name: &'static str) -> Self {
        Self { name, answer: PhantomData }
    }

    /// Two statics never share an address. The name is for debugging.
    fn key(&'static self) -> Key {
        (std::ptr::from_ref(self).addr(), self.name)
    }
}

type Key = (usize, &'static str);

#[derive(Debug, Default)]
pub(super) struct Derived {
    left_over: OnceLock<Vec<Interned>>,
    without_node: OnceLock<Vec<String>>,
    answers: Mutex<BTreeMap<Key, BTreeMap<String, Answer>>>,
}

#[derive(Debug, Clone)]
struct Answer {
    value: Arc<dyn Any + Send + Sync>,
    /// The inputs that the computation read. Everyone who uses the answer counts as reading them.
    read: Inputs,
}

impl ClusterState {
    /// The answer of a rule about many objects, computed once for all machines that ask and kept until something
    /// changes. `about` names the subject of the question. The answer must not depend on the machine that asks first.
    pub fn once<T: Send + Sync + 'static>(
        &self,
        memo: &'static Memo<T>,
        about: &str,
        work_out: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.answer(memo, about, false, work_out)
    }

    /// Like [`Self::once`], for an answer that depends on the time. Only the answer for the last requested time is
    /// kept.
    pub fn once_at<T: Send + Sync + 'static>(
        &self,
        memo: &'static Memo<T>,
        now: DateTime<Utc>,
        work_out: impl FnOnce() -> T,
    ) -> Arc<T> {
        self.answer(memo, &now.to_rfc3339(), true, work_out)
    }

    fn answer<T: Send + Sync + 'static>(
        &self,
        memo: &'static Memo<T>,
        about: &str,
        is_only: bool,
        work_out: impl FnOnce() -> T,
    ) -> Arc<T> {
        let answers = || self.derived.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = answers().get(&memo.key()).and_then(|of_memo| of_memo.get(about)).cloned();
        if let Some(Answer { value, read }) = known
            && let Ok(value) = value.downcast()
        {
            self.reads.add(read);
            return value;
        }
        // The lock is not held meanwhile: one answer may need another.
        let (value, read) = self.noting(work_out);
        self.reads.add(read);
        let value = Arc::new(value);
        let answer = Answer { value: Arc::clone(&value) as Arc<dyn Any + Send + Sync>, read };
        let mut answers = answers();
        let of_memo = answers.entry(memo.key()).or_default();
        if is_only {
            of_memo.clear();
        }
        of_memo.insert(about.to_owned(), answer);
        drop(answers);
        value
    }

    /// Names of the Nodes that Karpenter made and that no NodeClaim has.
    pub(super) fn left_over(&self) -> &[Interned] {
        self.derived.left_over.get_or_init(|| {
            let made = self
                .nodes()
                .filter(|n| !n.spec.provider_id.is_empty() && n.metadata.label("karpenter.sh/nodepool").is_some());
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

#[cfg(test)]
mod tests {
    use super::Memo;
    use crate::cluster_state::ClusterState;
    use crate::objects::input::Input;
    use std::collections::BTreeSet;

    #[test]
    fn two_questions_have_two_answers_though_their_type_and_their_name_are_one() {
        static NODES: Memo<usize> = Memo::new("how many");
        static PODS: Memo<usize> = Memo::new("how many");
        let cluster = ClusterState::default();
        assert_eq!((*cluster.once(&NODES, "", || 1), *cluster.once(&PODS, "", || 2)), (1, 2));
        assert_eq!((*cluster.once(&NODES, "", || 3), *cluster.once(&NODES, "other", || 4)), (1, 4));
    }

    #[test]
    fn whoever_takes_an_answer_reads_what_it_was_worked_out_of() {
        static INNER: Memo<usize> = Memo::new("nodes");
        static OUTER: Memo<usize> = Memo::new("nodes and pools");
        let cluster = ClusterState::default();
        let inner = || *cluster.once(&INNER, "", || cluster.nodes().count());
        let outer = || *cluster.once(&OUTER, "", || inner() + cluster.pools().count());
        for _ in 0..2 {
            let asked = cluster.inputs_asked_by(|| assert_eq!((cluster.csrs().count(), outer()), (0, 0)));
            assert_eq!(asked, BTreeSet::from([Input::Nodes, Input::NodePools, Input::CertificateSigningRequests]));
            assert_eq!(cluster.inputs_asked_by(|| assert_eq!(inner(), 0)), BTreeSet::from([Input::Nodes]));
        }
    }
}
