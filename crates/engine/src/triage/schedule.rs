//! What is judged when: what a change touched at the next look, what waits or is sick again at its time.

use crate::cluster_state::{ClusterState, Subject, Touched};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(super) struct Schedule {
    /// Subjects that wait or are sick, and when to look again.
    unsettled: BTreeMap<Subject, Option<DateTime<Utc>>>,
    due: BTreeSet<(DateTime<Utc>, Subject)>,
    touched: BTreeSet<Subject>,
    /// And every machine without a Node.
    without_node: bool,
}

impl Schedule {
    pub(super) fn touch(&mut self, subjects: impl IntoIterator<Item = Subject>) {
        self.touched.extend(subjects);
    }

    /// What a change may have altered: of everything, what is settled stays so.
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

    /// Takes out whom to look at now.
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

    /// When somebody is due, even if nothing changes.
    pub(super) fn next_due(&self) -> Option<DateTime<Utc>> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The subject waits or is sick; `None` where only a change can tell more.
    pub(super) fn look_again(&mut self, subject: &Subject, at: Option<DateTime<Utc>>) {
        // Whole seconds, as the clock is: one that has not quite come would be looked at in vain.
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
