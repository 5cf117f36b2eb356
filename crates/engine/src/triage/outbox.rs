//! Orders: what the replica that leads gives out at once, and a replica that follows keeps until the cluster shows it
//! done.

use super::incidents::IncidentSummary;
use super::same::same;
use crate::api::{NodeDiagnosis, ObjectRef, Outcome};
use chrono::TimeDelta;
use readers::aws_auth::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the rest of the operator has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Write(Box<Write>),
    Delete(Delete),
    Summarize(Box<IncidentSummary>),
    /// The Event of a verdict that is in the cluster already.
    Announce(Arc<NodeDiagnosis>),
    /// By the name of their Node; where it is empty, those that wait for one.
    ListPods(String),
    ReviewAccess(Identity),
}

/// A NodeDiagnosis that is no longer kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    pub name: String,
    /// The object that is meant; `None` where the cluster has not shown it.
    pub uid: Option<String>,
}

/// A NodeDiagnosis to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    pub diagnosis: Arc<NodeDiagnosis>,
    /// An object of the same name stands for an earlier machine, and its subject cannot change: delete it first.
    pub replaces: bool,
    /// The cause is news: say it in an Event.
    pub announces: bool,
    /// The machine had no diagnosis before.
    pub first: bool,
    /// The machine's story ends with this write.
    pub ends: Option<Outcome>,
    /// For how long its instance ran, where the machine ends with this write without having joined.
    pub in_vain: Option<TimeDelta>,
}

impl Write {
    /// Takes over what an earlier one, not carried out yet, had still to do.
    pub fn overtake(&mut self, earlier: &Self) {
        self.replaces |= earlier.replaces;
        self.announces |= earlier.announces;
    }
}

/// What was ordered and is not yet seen in the cluster.
#[derive(Debug)]
enum Pending {
    Write(Box<Write>),
    Delete(Delete),
}

/// A NodeDiagnosis as the cluster shows it.
#[derive(Debug)]
struct Held {
    uid: String,
    subject: ObjectRef,
}

impl Held {
    fn of(shown: &NodeDiagnosis) -> Self {
        Self { uid: shown.metadata.uid.clone().unwrap_or_default(), subject: shown.spec.subject.clone() }
    }
}

/// What it means that a NodeDiagnosis is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoneMeans {
    /// It was to be deleted, or is of no concern.
    None,
    /// Its machine is still stuck.
    Open,
    /// Its machine's story had ended.
    Ended,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    leads: bool,
    held: BTreeMap<String, Held>,
    pending: BTreeMap<String, Pending>,
    orders: Vec<Order>,
}

impl Outbox {
    /// Whether the cluster has shown the diagnosis as it is here.
    pub(super) fn is_written(&self, name: &str) -> bool {
        !self.pending.contains_key(name)
    }

    /// From now on this replica writes: first what the one before it did not come to. What of that is news is returned.
    pub(super) fn lead(&mut self) -> Vec<Arc<NodeDiagnosis>> {
        self.leads = true;
        let mut news = Vec::new();
        for (name, pending) in &mut self.pending {
            self.orders.push(match pending {
                Pending::Write(write) => {
                    // What stands for an earlier machine may be deleted already.
                    let uid = &write.diagnosis.spec.subject.uid;
                    write.replaces = self.held.get(name).is_some_and(|held| !held.subject.stands_for(uid));
                    news.extend(write.announces.then(|| Arc::clone(&write.diagnosis)));
                    Order::Write(write.clone())
                }
                Pending::Delete(delete) => Order::Delete(delete.clone()),
            });
        }
        news
    }

    /// From now on another replica writes.
    pub(super) const fn follow(&mut self) {
        self.leads = false;
    }

    /// Verdicts that are still to be written bring their Events with them.
    pub(super) fn announce(&mut self, diagnoses: Vec<Arc<NodeDiagnosis>>) {
        let is_written = |d: &Arc<NodeDiagnosis>| d.metadata.name.as_deref().is_some_and(|name| self.is_written(name));
        let orders: Vec<_> = diagnoses.into_iter().filter(is_written).map(Order::Announce).collect();
        self.orders.extend(orders);
    }

    /// Asks something, whether this replica leads or not.
    pub(super) fn ask(&mut self, questions: Vec<Order>) {
        self.orders.extend(questions);
    }

    pub(super) fn summarize(&mut self, summaries: impl IntoIterator<Item = IncidentSummary>) {
        let orders = summaries.into_iter().map(|summary| Order::Summarize(Box::new(summary)));
        self.orders.extend(orders.filter(|_| self.leads));
    }

    pub(super) fn write(&mut self, mut write: Write) {
        let Some(name) = write.diagnosis.metadata.name.clone() else { return };
        if self.leads {
            self.orders.push(Order::Write(Box::new(write.clone())));
        }
        if let Some(Pending::Write(before)) = self.pending.get(&name) {
            write.overtake(before);
        }
        self.pending.insert(name, Pending::Write(Box::new(write)));
    }

    /// Writes again those that a new list shows otherwise than they were written. The kind may have lacked a field
    /// then, and have it now.
    pub(super) fn write_again(&mut self, shown: &BTreeSet<String>) {
        if !self.leads {
            return;
        }
        for (name, pending) in self.pending.iter().filter(|(name, _)| shown.contains(*name)) {
            if let Pending::Write(write) = pending
                && self.held.get(name).is_some_and(|held| held.subject == write.diagnosis.spec.subject)
            {
                // Its news has been announced.
                let again = Write {
                    diagnosis: Arc::clone(&write.diagnosis),
                    replaces: false,
                    announces: false,
                    first: false,
                    ends: None,
                    in_vain: None,
                };
                self.orders.push(Order::Write(Box::new(again)));
            }
        }
    }

    pub(super) fn delete(&mut self, name: String) {
        let delete = Delete { uid: self.held.get(&name).map(|held| held.uid.clone()), name: name.clone() };
        if self.leads {
            self.orders.push(Order::Delete(delete.clone()));
        }
        self.pending.insert(name, Pending::Delete(delete));
    }

    /// What the cluster shows, and nodewhy would never write, is deleted.
    pub(super) fn refuse(&mut self, name: String, shown: &NodeDiagnosis) {
        self.held.insert(name.clone(), Held::of(shown));
        if !matches!(self.pending.get(&name), Some(Pending::Delete(_))) {
            self.delete(name);
        }
    }

    /// What is said of many comes first.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        let mut orders = std::mem::take(&mut self.orders);
        orders.sort_by_key(|order| !matches!(order, Order::Write(write) if write.diagnosis.speaks_for_machines()));
        orders
    }

    /// Takes in what the cluster shows: our own write as it comes back, that of the replica that leads, or of an
    /// earlier run. True where it is to be taken up instead of ours. `here` is the UID of the object that ours is
    /// about, as it is in the cluster.
    pub(super) fn show<'u>(
        &mut self,
        name: &str,
        shown: &NodeDiagnosis,
        ours: Option<&NodeDiagnosis>,
        here: impl FnOnce() -> Option<&'u str>,
    ) -> bool {
        self.held.insert(name.to_owned(), Held::of(shown));
        let is_taken = match (ours, self.pending.get(name)) {
            (_, Some(Pending::Delete(_))) => return false,
            (Some(ours), _) if same(ours, shown) => false,
            (Some(ours), _) if self.leads || !yields(ours, shown, here) => return false,
            _ => true,
        };
        self.pending.remove(name);
        is_taken
    }

    /// A NodeDiagnosis is gone from the cluster, whoever deleted it.
    pub(super) fn miss(&mut self, name: &str, ours: Option<&NodeDiagnosis>) -> GoneMeans {
        let held = self.held.remove(name);
        let pending = self.pending.get(name);
        if let Some(Pending::Delete(_)) = pending {
            self.pending.remove(name);
            return GoneMeans::None;
        }
        match held.and_then(|held| ours.filter(|ours| ours.spec.subject.uid == held.subject.uid)) {
            Some(ours) if ours.is_open() => GoneMeans::Open,
            Some(_) if pending.is_none() => GoneMeans::Ended,
            _ => GoneMeans::None,
        }
    }
}

/// Whether a replica that follows takes what the cluster shows instead of what it concluded itself.
fn yields<'u>(ours: &NodeDiagnosis, shown: &NodeDiagnosis, here: impl FnOnce() -> Option<&'u str>) -> bool {
    let (our_uid, shown_uid) = (&ours.spec.subject.uid, &shown.spec.subject.uid);
    // Half written, or written before the machine's end, which we have seen.
    if shown.status.is_none() || (shown.is_open() && ours.is_final() && ours.spec.subject.stands_for(shown_uid)) {
        return false;
    }
    // Of an earlier machine of that name.
    our_uid == shown_uid || here() != Some(our_uid)
}
