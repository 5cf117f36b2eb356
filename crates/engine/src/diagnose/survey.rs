//! All verdicts at one time, and what was read for them.

use super::{Judgement, judge_case};
use crate::api::judged::{AlsoStuck, Judged, JudgedBy, Otherwise, UnplacedPods, WaitingMachine};
use crate::api::{Confidence, NodeDiagnosis, Text};
use crate::case::Case;
use crate::case::judging::Judging;
use crate::explain::logged::excerpt;
use crate::objects::input::Input;
use crate::objects::{NodeClass, Pod};
use crate::rules;
use crate::upstream::former_words::Words;
use crate::upstream::unplaced::is_repeated;
use std::collections::BTreeSet;

/// The diagnoses of a cluster, and what they are based on.
#[derive(Debug, Clone, PartialEq)]
pub struct Survey {
    /// In the order of [`Case::all`].
    pub diagnoses: Vec<NodeDiagnosis>,
    pub judged: Judged,
}

impl Survey {
    /// Judges everything at one time.
    pub fn of(judging: Judging, clock: JudgedBy) -> Self {
        let Judging { cluster, now, thresholds } = judging;
        // A diagnosis is large, and a growing list is copied. Unused capacity is never touched, so it takes no memory.
        let mut diagnoses = Vec::with_capacity(cluster.claims().size_hint().0);
        let mut waiting = Vec::new();
        let read_for = |case: &Case| {
            let of_stage = rules::of_stage(case.stage()).into_iter().flat_map(|of_stage| of_stage.reads(cluster));
            of_stage.copied().filter(|input| case.goes_by(*input)).collect::<Vec<_>>()
        };
        // Inputs that open verdicts lack. Proven verdicts lack nothing. Without Nodes and NodeClaims nothing is judged,
        // so their absence is always reported.
        let (mut open, mut wanted) = (BTreeSet::new(), BTreeSet::from([Input::NodeClaims, Input::Nodes]));
        for case in Case::all(judging) {
            match judge_case(&case, thresholds) {
                Judgement::Sick(diagnosis, _) => {
                    let is_open =
                        diagnosis.status.as_ref().is_some_and(|status| status.confidence != Confidence::Certain);
                    let of_auto_mode = case.class().is_some_and(NodeClass::is_auto_mode);
                    if is_open && open.insert((case.stage(), of_auto_mode)) {
                        wanted.extend(read_for(&case));
                    }
                    diagnoses.push(*diagnosis);
                }
                // Without a time, it waits only for a change, such as a machine that drains.
                Judgement::Waiting(Some(until)) => {
                    let (name, stage, since) = (case.diagnosis_name(), case.stage(), case.wait.since);
                    waiting.push(WaitingMachine { name, stage, since, until, because: because(&case) });
                }
                Judgement::Waiting(None) | Judgement::Healthy => {}
            }
        }
        diagnoses.shrink_to_fit();
        waiting.sort_by(|a, b| (a.since, &a.name).cmp(&(b.since, &b.name)));
        // A review is about one identity. Its rule says so if nodewhy could not ask.
        let is_list = |input: &Input| !input.may_be_absent() && *input != Input::AccessReviews;
        let missing = |input: &Input| is_list(input) && cluster.missing(*input).is_some();
        let judged = Judged {
            about: Vec::new(),
            at: now,
            clock,
            node_claims: cluster.claims().count(),
            nodes: cluster.nodes().count(),
            node_pools: cluster.pools().count(),
            node_classes: cluster.classes().count(),
            logs: cluster.instances().count(),
            stuck: diagnoses.len(),
            waiting,
            unplaced: unplaced(judging, &diagnoses),
            missing: wanted.into_iter().filter(missing).map(|input| input.name().to_owned()).collect(),
            unread: cluster.unread().to_vec(),
            otherwise: None,
        };
        Self { diagnoses, judged }
    }

    /// Compares with the other possible time of a dump, if the time is uncertain. Records what differs at that time.
    #[must_use]
    pub fn or_at(mut self, other: Judging, clock: JudgedBy) -> Self {
        let at = other.now;
        let other = Self::of(other, clock);
        let (here, there) = (self.names(), other.names());
        let not_stuck: Vec<String> = here.difference(&there).map(|name| (*name).to_owned()).collect();
        let only_there =
            other.diagnoses.iter().filter(|d| d.metadata.name.as_deref().is_some_and(|name| !here.contains(name)));
        let also_stuck: Vec<AlsoStuck> = only_there.filter_map(in_short).collect();
        if !also_stuck.is_empty() || !not_stuck.is_empty() {
            self.judged.otherwise = Some(Otherwise { at, clock, also_stuck, not_stuck });
        }
        self
    }

    /// How sure the surest verdict is, at either time.
    pub fn surest(&self) -> Option<Confidence> {
        let here = self.diagnoses.iter().filter_map(|d| d.status.as_ref()).map(|status| status.confidence);
        let otherwise =
            self.judged.otherwise.iter().flat_map(|otherwise| &otherwise.also_stuck).map(|stuck| stuck.confidence);
        here.chain(otherwise).max()
    }

    fn names(&self) -> BTreeSet<&str> {
        self.diagnoses.iter().filter_map(|d| d.metadata.name.as_deref()).collect()
    }
}

/// What a machine waits for, in the words of the kinds that the user has.
fn because(case: &Case) -> Text {
    let because = &case.wait.evidence.because;
    match case.words() {
        Words::Present => because.clone(),
        former => former.said(because).into(),
    }
}

/// Pods that Karpenter has refused a machine for longer than one takes to join. A verdict about a NodePool or a node
/// class explains them, or may.
fn unplaced(judging: Judging, diagnoses: &[NodeDiagnosis]) -> Option<UnplacedPods> {
    let Judging { cluster, now, thresholds } = judging;
    if diagnoses.iter().any(|diagnosis| diagnosis.spec.node_claim.is_none() && diagnosis.spec.node.is_none()) {
        return None;
    }
    let said = cluster.unplaced().filter(|(event, pod)| is_repeated(event, now) && pod.unscheduled().is_some());
    let since = |pod: &Pod| pod.metadata.creation_timestamp.filter(|made| now - *made >= thresholds.join);
    let mut waiting: Vec<_> = said.filter_map(|(event, pod)| Some((since(pod)?, &pod.metadata, event))).collect();
    waiting.sort_by_key(|(since, pod, _)| (*since, pod.namespace.as_deref(), &pod.name));
    waiting.dedup_by_key(|(_, pod, _)| std::ptr::from_ref(*pod));
    let (since, pod, event) = *waiting.first()?;
    Some(UnplacedPods {
        pods: waiting.len(),
        namespace: pod.namespace.as_deref().unwrap_or("default").to_owned(),
        name: pod.name.to_string(),
        since,
        message: excerpt(event.said().trim_start_matches("Failed to schedule pod, ")),
    })
}

fn in_short(diagnosis: &NodeDiagnosis) -> Option<AlsoStuck> {
    let (name, status) = (diagnosis.metadata.name.clone()?, diagnosis.status.as_ref()?);
    Some(AlsoStuck {
        name,
        cause: status.cause.clone(),
        confidence: status.confidence,
        summary: status.summary.to_string(),
    })
}
