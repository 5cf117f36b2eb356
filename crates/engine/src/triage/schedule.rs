//! When each subject is judged: at the next look after a change, or at its due time while it waits or is stuck.

use crate::cluster_state::{ClusterState, Subject, Touched};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Subjects that wait or are stuck, and when to look again.
    unsettled: BTreeMap<Subject, Option<DateTime<Utc>>>,
    due: BTreeSet<(DateTime<Utc>, Subject)>,
    touched: BTreeSet<Subject>,
    /// Whether to judge every machine without a Node too.
    without_node: bool,
}

impl Schedule {
    pub(super) fn touch(&mut self, subjects: impl IntoIterator<Item = Subject>) {
        self.touched.extend(subjects);
    }

    /// Schedules the subjects that a change may affect. `Everything` means all unsettled subjects.
    pub(super) fn take(&mut self, touched: Touched) {
        match touched {
            Touched::Subjects(subjects) => self.touched.extend(subjects),
            Touched::AndWithoutNode(subjects) => {
                self.touched.extend(subjects);
                self.without_node = true;
            }
            Touched::Everything => self.touched.extend(self.unsettled.keys().cloned()),
        }
    }

    #[cfg(test)]
    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Removes and returns the subjects to judge now.
    pub(super) fn next(&mut self, cluster: &ClusterState, now: DateTime<Utc>) -> BTreeSet<Subject> {
        if std::mem::take(&mut self.without_node) {
            let waiting = cluster.claims_without_node();
            self.touched.extend(waiting.map(|claim| Subject::Claim(claim.name().to_owned())));
        }
        while let Some((at, _)) = self.due.first()
            && *at <= now
        {
            let Some((_, subject)) = self.due.pop_first() else { break };
            self.touched.insert(subject);
        }
        std::mem::take(&mut self.touched)
    }

    /// When the next subject is due, even if nothing changes.
    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The subject waits or is stuck. `None` if only a change can show more.
    pub(super) fn look_again(&mut self, subject: &Subject, at: Option<DateTime<Utc>>) {
        // Whole seconds, like the clock. Otherwise a subject would be judged just before its time.
        let at = at.map(|at| if at.trunc_subsecs(0) < at { at.trunc_subsecs(0) + TimeDelta::seconds(1) } else { at });
        if let Some(Some(before)) = self.unsettled.insert(subject.clone(), at) {
            self.due.remove(&(before, subject.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, subject.clone()));
        }
    }

    /// The subject is healthy, or gone.
    pub(super) fn settle(&mut self, subject: &Subject) {
        if let Some(Some(at)) = self.unsettled.remove(subject) {
            self.due.remove(&(at, subject.clone()));
        }
    }
}
