//! Diagnoses whose cause has just gone: most likely somebody has repaired the machine, and Karpenter or the kubelet
//! needs a moment to see it. Until then the machine waits for nothing that a verdict could name, and what ends with it
//! is what held it up.

use crate::api::NodeDiagnosis;
use crate::case::Case;
use crate::case::finding::Opinion;
use crate::case::stage::Thresholds;
use crate::cluster_state::Subject;
use crate::rules;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Since when the cause that stands is not found any more.
#[derive(Debug, Default)]
pub(super) struct Repaired(BTreeMap<Subject, DateTime<Utc>>);

impl Repaired {
    /// Until when a diagnosis stands, though the machine, still at the same stage, now looks as if something else held
    /// it up.
    ///
    /// The machine is given what any machine is given at the least; one that no time heals is given none.
    pub(super) fn until(&mut self, known: &NodeDiagnosis, case: &Case, t: &Thresholds) -> Option<DateTime<Utc>> {
        let subject = Subject::of(&known.spec.subject)?;
        let rule = known.cause().and_then(rules::by_cause)?;
        if matches!((rule.check)(case), Some(Opinion::Found(_))) {
            self.0.remove(&subject);
            return None;
        }
        let since = *self.0.entry(subject.clone()).or_insert(case.now);
        let until = since.checked_add_signed(t.proven.min(case.wait.patience)).filter(|until| case.now < *until);
        // What takes its place may be repaired in turn, and has a time of its own.
        if until.is_none() {
            self.0.remove(&subject);
        }
        until
    }

    /// The subject has the cause that was said, or waits for nothing.
    pub(super) fn settle(&mut self, subject: &Subject) {
        self.0.remove(subject);
    }
}

/// Whether another cause would take the place of the one that an open diagnosis of the same wait has.
pub(super) fn is_replaced(known: &NodeDiagnosis, by: &NodeDiagnosis) -> bool {
    let stage = |d: &NodeDiagnosis| d.status.as_ref().map(|s| s.stage);
    known.is_open()
        && by.is_open()
        && known.spec.subject.kind == by.spec.subject.kind
        && known.spec.subject.stands_for(&by.spec.subject.uid)
        && stage(known) == stage(by)
        && known.cause() != by.cause()
}
