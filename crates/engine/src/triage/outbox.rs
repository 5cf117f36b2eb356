//! Orders. The leading replica carries them out at once. A follower keeps them until the cluster shows them done.

use super::incidents::IncidentSummary;
use super::verdict_diff::same;
use crate::api::{NodeDiagnosis, ObjectRef, Outcome};
use chrono::TimeDelta;
use readers::aws_auth::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Work for the rest of the operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Write(Box<Write>),
    Delete(Delete),
    Summarize(Box<IncidentSummary>),
    /// The Event of a verdict that the cluster already has.
    Announce(Arc<NodeDiagnosis>),
    /// The pods of the Node with this name. An empty name means the pods without a Node.
    ListPods(String),
    ReviewAccess(Identity),
}

/// A NodeDiagnosis that is no longer kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    pub name: String,
    /// UID of the object to delete. `None` if the cluster has not shown it.
    pub uid: Option<String>,
}

/// A NodeDiagnosis to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    pub diagnosis: Arc<NodeDiagnosis>,
    /// Whether to delete an object of the same name first. It is about an earlier machine, and its subject cannot
    /// change.
    pub replaces: bool,
    /// Whether to report the cause in an Event, because it is new.
    pub announces: bool,
    /// Whether the machine had no diagnosis before.
    pub first: bool,
    /// The outcome, if this write closes the diagnosis.
    pub ends: Option<Outcome>,
    /// The time that the instance ran, if the machine ends with this write and never joined.
    pub in_vain: Option<TimeDelta>,
}

impl Write {
    /// Takes over the pending work of an earlier write.
    pub fn overtake(&mut self, earlier: &Self) {
        self.replaces |= earlier.replaces;
        self.announces |= earlier.announces;
    }
}

/// An order that the cluster does not show yet.
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

/// The reason why a NodeDiagnosis is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoneMeans {
    /// nodewhy deleted it, or it does not matter.
    None,
    /// Its machine is still stuck.
    Open,
    /// Its machine had ended.
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

    /// Starts to write. The unfinished work of the previous leader comes first. Returns the diagnoses that need an
    /// Event.
    pub(super) fn lead(&mut self) -> Vec<Arc<NodeDiagnosis>> {
        self.leads = true;
        let mut news = Vec::new();
        for (name, pending) in &mut self.pending {
            self.orders.push(match pending {
                Pending::Write(write) => {
                    // The object of an earlier machine may be deleted already.
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

    /// Stops writing, because another replica leads.
    pub(super) const fn follow(&mut self) {
        self.leads = false;
    }

    /// Announces verdicts that are written already. The others bring their Events with them.
    pub(super) fn announce(&mut self, diagnoses: Vec<Arc<NodeDiagnosis>>) {
        let is_written = |d: &Arc<NodeDiagnosis>| d.metadata.name.as_deref().is_some_and(|name| self.is_written(name));
        let orders: Vec<_> = diagnoses.into_iter().filter(is_written).map(Order::Announce).collect();
        self.orders.extend(orders);
    }

    /// Adds questions, whether this replica leads or not.
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

    /// Deletes a NodeDiagnosis in the cluster that nodewhy would never write.
    pub(super) fn refuse(&mut self, name: String, shown: &NodeDiagnosis) {
        self.held.insert(name.clone(), Held::of(shown));
        if !matches!(self.pending.get(&name), Some(Pending::Delete(_))) {
            self.delete(name);
        }
    }

    /// Takes all orders. Diagnoses of NodePools that speak for many machines come first.
    pub(super) fn take_orders(&mut self) -> Vec<Order> {
        let mut orders = std::mem::take(&mut self.orders);
        orders.sort_by_key(|order| !matches!(order, Order::Write(write) if write.diagnosis.speaks_for_machines()));
        orders
    }

    /// Handles a NodeDiagnosis that the cluster shows: our own write, or one of the leader or of an earlier run.
    /// Returns true if it replaces ours. `here` is the UID of the object that ours is about, as it is in the cluster.
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

    /// Handles a NodeDiagnosis that is gone from the cluster, no matter what deleted it.
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

/// Whether a follower accepts the diagnosis in the cluster instead of its own.
fn yields<'u>(ours: &NodeDiagnosis, shown: &NodeDiagnosis, here: impl FnOnce() -> Option<&'u str>) -> bool {
    let (our_uid, shown_uid) = (&ours.spec.subject.uid, &shown.spec.subject.uid);
    // It is half written, or it was written before we saw the end of the machine.
    if shown.status.is_none() || (shown.is_open() && ours.is_final() && ours.spec.subject.stands_for(shown_uid)) {
        return false;
    }
    // If only ours is about the present machine, the shown one is about an earlier machine of that name.
    our_uid == shown_uid || here() != Some(our_uid)
}
