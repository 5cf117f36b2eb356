//! What the operator decides, without IO and without a clock: whom to look at, which diagnoses to open, change and close.
//!
//! Changes go in, orders come out. A diagnosis that is already in the cluster is taken up as it is, so a restart writes nothing.
//!
//! A replica that does not lead decides the same, and keeps its orders until the cluster shows that the leader carried them out.
//! When it takes over, what is left of them is what the leader did not come to.

pub mod change;
mod history;
mod last_words;
mod same;
#[cfg(test)]
mod tests;

use crate::api::{Condition, Confidence, NodeDiagnosis, NodeDiagnosisStatus, ObjectRef, Outcome, Stage};
use crate::case::deletion_reason;
use crate::case::stage::{self, Thresholds};
use crate::case::{Case, nodes_of};
use crate::diagnose::{self, Judgement};
use crate::objects::input::{Input, Object};
use crate::objects::{Meta, NodeClaim};
use crate::remediation::{self, Remark, remediated};
use crate::rules;
use crate::rules::shared::told_by_aws;
use readers::aws_auth::identity::Identity;

use crate::cluster_state::{Availability, ClusterState, Subject, Touched};
use change::{Change, ReadFailure};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
pub use history::Keep;
use history::{History, Incident};
use same::same;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a verdict waits for what is asked on its behalf: the pods of its Node, the rights of its kubelet.
const ANSWER_WITHIN: TimeDelta = TimeDelta::seconds(10);
/// How long an answer is good at least. The longer a machine is stuck, the less often it is asked again.
const FRESH: TimeDelta = TimeDelta::seconds(30);
const FRESH_AT_MOST: TimeDelta = TimeDelta::minutes(10);
/// Karpenter deletes claims that cannot launch at once and makes new ones: one diagnosis per cause speaks for so long for all of them.
const NEVER_LAUNCHED_AGAIN: TimeDelta = TimeDelta::hours(1);

/// What the rest of the operator has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    Write(Box<Write>),
    Delete(Delete),
    Summarize(Box<Summary>),
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

/// One cause that holds up machines of one NodePool, told on the NodePool and on its node class.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub cause: String,
    pub note: String,
    /// The NodePool and the node class, those that exist.
    pub regarding: Vec<ObjectRef>,
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
    subject_uid: String,
}

/// Something that is asked when a stuck machine's rules want it.
#[derive(Debug)]
struct Asked {
    at: DateTime<Utc>,
    answered: bool,
}

/// Whether what the rules want is there.
enum Answer {
    Unwanted,
    AwaitedUntil(DateTime<Utc>),
    KnownUntil(DateTime<Utc>),
}

/// The cluster, and what was said about it.
#[derive(Debug)]
pub struct Triage {
    cluster: ClusterState,
    thresholds: Thresholds,
    started: bool,
    leads: bool,
    /// As in the cluster or on the way there. Ended ones too.
    diagnoses: History,
    held: BTreeMap<String, Held>,
    pending: BTreeMap<String, Pending>,
    /// Incidents that were summarized, and how many machines they had then.
    summarized: BTreeMap<Incident, usize>,
    /// Incidents that a machine has joined since the last look.
    joined: BTreeSet<Incident>,
    /// Subjects that wait or are sick, and when to look again.
    unsettled: BTreeMap<Subject, Option<DateTime<Utc>>>,
    due: BTreeSet<(DateTime<Utc>, Subject)>,
    touched: BTreeSet<Subject>,
    pods: BTreeMap<String, Asked>,
    access: BTreeMap<Identity, Asked>,
    orders: Vec<Order>,
}

impl Triage {
    #[must_use]
    pub fn new(thresholds: Thresholds, keep: Keep) -> Self {
        Self {
            cluster: ClusterState::default(),
            thresholds,
            started: false,
            leads: false,
            diagnoses: History::new(keep),
            held: BTreeMap::new(),
            pending: BTreeMap::new(),
            summarized: BTreeMap::new(),
            joined: BTreeSet::new(),
            unsettled: BTreeMap::new(),
            due: BTreeSet::new(),
            touched: BTreeSet::new(),
            pods: BTreeMap::new(),
            access: BTreeMap::new(),
            orders: Vec::new(),
        }
    }

    #[must_use]
    pub const fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// The diagnoses of machines that are stuck now.
    pub fn open(&self) -> impl Iterator<Item = &NodeDiagnosis> {
        self.diagnoses.open()
    }

    /// Differs whenever something else was said: what is counted over all diagnoses need not be counted again before.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.diagnoses.revision()
    }

    /// Every diagnosis, ended ones too.
    pub fn diagnoses(&self) -> impl Iterator<Item = &NodeDiagnosis> + Clone {
        self.diagnoses.all()
    }

    /// The subjects that are stuck and whose verdicts are `wanted`, as they stand now.
    pub fn cases(
        &self,
        now: DateTime<Utc>,
        wanted: impl Fn(&NodeDiagnosisStatus) -> bool,
    ) -> impl Iterator<Item = (Case<'_>, &NodeDiagnosisStatus)> {
        self.diagnoses.open().filter_map(move |diagnosis| {
            let verdict = diagnosis.status.as_ref().filter(|verdict| wanted(verdict))?;
            Some((Case::of(&self.cluster, &subject_of(&diagnosis.spec.subject)?, now, &self.thresholds)?, verdict))
        })
    }

    /// Whether the cluster has shown the diagnosis as it is here.
    #[must_use]
    pub fn is_written(&self, name: &str) -> bool {
        !self.pending.contains_key(name)
    }

    /// Notes in a diagnosis what remediation did or refused; `None` where it says so already.
    pub fn note(&mut self, remark: &Remark, now: DateTime<Utc>) -> Option<Arc<NodeDiagnosis>> {
        let mut diagnosis = self.diagnoses.get(&remark.diagnosis)?.clone();
        let before = remediated(&diagnosis);
        if before.is_some_and(|c| c.reason == remark.reason) {
            return None;
        }
        let status = remark.result.status();
        let since = before.filter(|c| c.status == status).map_or(now, |c| c.last_transition_time);
        let verdict = diagnosis.status.as_mut()?;
        verdict.conditions.retain(|c| c.type_ != remediation::CONDITION);
        verdict.conditions.push(Condition {
            type_: remediation::CONDITION.into(),
            status: status.into(),
            last_transition_time: since,
            reason: remark.reason.into(),
            message: remark.message.clone(),
            observed_generation: None,
        });
        let diagnosis = Arc::new(diagnosis);
        // The story of a machine that has ended is not told a second time.
        self.hand_over(Write { diagnosis: Arc::clone(&diagnosis), replaces: false, announces: false, first: false, ends: None });
        Some(diagnosis)
    }

    /// When to look again, even if nothing changes.
    #[must_use]
    pub fn next_look(&self) -> Option<DateTime<Utc>> {
        self.due.first().map(|(at, _)| *at).into_iter().chain(self.diagnoses.next_end()).min()
    }

    /// The first lists are complete: from now on verdicts are given. Half a cluster would give false ones.
    pub fn start(&mut self) {
        self.started = true;
        self.touched.extend(self.cluster.subjects());
        self.touched.extend(self.diagnoses.open().filter_map(|d| subject_of(&d.spec.subject)));
        self.summarized = self.diagnoses.incidents().map(|(incident, machines)| (incident.clone(), machines)).collect();
    }

    /// From now on this replica writes: first what the one before it did not come to.
    pub fn lead(&mut self) {
        self.leads = true;
        for (name, pending) in &mut self.pending {
            self.orders.push(match pending {
                Pending::Write(write) => {
                    // What stands for an earlier machine may be deleted already.
                    write.replaces =
                        self.held.get(name).is_some_and(|held| !same_uid(&held.subject_uid, &write.diagnosis.spec.subject.uid));
                    if write.announces {
                        let incident = Incident::of(&write.diagnosis);
                        self.summarized.remove(&incident);
                        self.joined.insert(incident);
                    }
                    Order::Write(write.clone())
                }
                Pending::Delete(delete) => Order::Delete(delete.clone()),
            });
        }
    }

    /// From now on another replica writes.
    pub const fn follow(&mut self) {
        self.leads = false;
    }

    /// Takes in a change.
    pub fn take(&mut self, change: Change, now: DateTime<Utc>) {
        match change {
            Change::Applied(object) => self.apply(*object, now),
            Change::Removed { input: Input::NodeClaims, name, last, .. } => self.on_claim_deleted(&name, last.map(|o| *o), now),
            Change::Removed { input, namespace, name, .. } => {
                if input == Input::Nodes {
                    self.pods.remove(&name);
                }
                let touched = self.cluster.remove(input, namespace.as_deref(), &name);
                self.touch(touched);
            }
            Change::Pods { node, pods } => self.take_pods(&node, pods, now),
            Change::Access { identity, answer } => self.take_access(&identity, answer, now),
            Change::Diagnosis(diagnosis) => self.take_diagnosis(*diagnosis),
            Change::DiagnosisGone(name) => self.miss_diagnosis(&name),
            Change::DiagnosesListed(names) => self.take_list(&names),
            Change::Unreadable { .. } | Change::Source { .. } => {}
        }
    }

    /// Says whether an input can be read.
    pub fn mark(&mut self, input: Input, availability: Availability) {
        let before = self.cluster.missing(input).map(str::to_owned);
        self.cluster.mark(input, availability);
        if self.cluster.missing(input) != before.as_deref() {
            self.touch(Touched::Everything);
        }
    }

    /// Looks at every subject that a change touched or whose time has come, and says what to do.
    pub fn look(&mut self, now: DateTime<Utc>) -> Vec<Order> {
        if self.started {
            while let Some((at, _)) = self.due.first()
                && *at <= now
            {
                let Some((_, subject)) = self.due.pop_first() else { break };
                self.touched.insert(subject);
            }
            for subject in std::mem::take(&mut self.touched) {
                self.look_at(&subject, now);
            }
            self.forget(now);
            self.summarize();
        }
        std::mem::take(&mut self.orders)
    }

    /// What the cluster holds: our own write as it comes back, that of the replica that leads, or of an earlier run.
    fn take_diagnosis(&mut self, shown: NodeDiagnosis) {
        let Some(name) = shown.metadata.name.clone() else { return };
        let held = Held { uid: shown.metadata.uid.clone().unwrap_or_default(), subject_uid: shown.spec.subject.uid.clone() };
        self.held.insert(name.clone(), held);
        match (self.diagnoses.get(&name), self.pending.get(&name)) {
            (_, Some(Pending::Delete(_))) => return,
            (Some(ours), _) if same(ours, &shown) => {
                self.pending.remove(&name);
                return;
            }
            (Some(ours), _) if self.leads || !self.yields(ours, &shown) => return,
            _ => {}
        }
        self.pending.remove(&name);
        self.touched.extend(subject_of(&shown.spec.subject).filter(|_| is_open(&shown)));
        self.diagnoses.insert(Arc::new(shown));
    }

    /// Whether a replica that follows takes what the cluster shows instead of what it concluded itself.
    fn yields(&self, ours: &NodeDiagnosis, shown: &NodeDiagnosis) -> bool {
        // Half written, or written before the machine's end, which we have seen.
        if shown.status.is_none() || (is_open(shown) && is_final(ours) && same_uid(&ours.spec.subject.uid, &shown.spec.subject.uid)) {
            return false;
        }
        // Of an earlier machine of that name.
        let here = subject_of(&ours.spec.subject).and_then(|subject| self.uid_of(&subject));
        ours.spec.subject.uid == shown.spec.subject.uid || here.as_ref() != Some(&ours.spec.subject.uid)
    }

    /// A NodeDiagnosis is gone. While its machine is stuck it comes back.
    fn miss_diagnosis(&mut self, name: &str) {
        let held = self.held.remove(name);
        if let Some(Pending::Delete(_)) = self.pending.get(name) {
            self.pending.remove(name);
            return;
        }
        let Some(held) = held else { return };
        let Some(ours) = self.diagnoses.get(name).filter(|ours| ours.spec.subject.uid == held.subject_uid) else { return };
        if is_open(ours) {
            let ours = ours.clone();
            self.touched.extend(subject_of(&ours.spec.subject));
            self.order(ours, false, false);
        } else if !self.pending.contains_key(name) {
            self.diagnoses.remove(name);
        }
    }

    /// What was written and then deleted while the watch was away, nothing else tells. What is still to be written is written once.
    fn take_list(&mut self, names: &BTreeSet<String>) {
        let missing = |d: &&NodeDiagnosis| d.metadata.name.as_ref().is_some_and(|name| !names.contains(name));
        let missing: Vec<_> = self.diagnoses.open().filter(missing).cloned().collect();
        for diagnosis in missing {
            self.order(diagnosis, false, false);
        }
    }

    /// Deletes what is no longer kept.
    fn forget(&mut self, now: DateTime<Utc>) {
        for name in self.diagnoses.forget(now).into_iter().filter_map(|d| d.metadata.name.clone()) {
            self.delete(name);
        }
    }

    /// Tells of incidents that are new, or have twice as many machines as when they were told of.
    fn summarize(&mut self) {
        for incident in std::mem::take(&mut self.joined) {
            let machines = self.diagnoses.open_of(&incident);
            let told = self.summarized.get(&incident).copied().unwrap_or_default();
            if machines >= told.saturating_mul(2).max(1) {
                let summary = self.diagnoses.of(&incident).find(|d| is_open(d)).and_then(|d| self.summary(&incident, machines, d));
                self.orders.extend(summary.filter(|_| self.leads).map(|summary| Order::Summarize(Box::new(summary))));
                self.summarized.insert(incident, machines);
            }
        }
        let diagnoses = &self.diagnoses;
        self.summarized.retain(|incident, _| diagnoses.open_of(incident) > 0);
    }

    fn summary(&self, incident: &Incident, machines: usize, example: &NodeDiagnosis) -> Option<Summary> {
        // A diagnosis of the NodePool or the node class itself is told on it anyway.
        if !matches!(subject_of(&example.spec.subject)?, Subject::Claim(_) | Subject::Node(_)) {
            return None;
        }
        let pool = self.cluster.pool(incident.node_pool.as_ref()?)?;
        let class = &pool.spec.template.spec.node_class_ref;
        let class = self.cluster.class(&class.kind, &class.name).map(|facts| &facts.class);
        let reference = |api_version: &str, kind: &str, meta: &Meta| ObjectRef {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            name: meta.name.to_string(),
            uid: meta.uid.to_string(),
        };
        let regarding = [reference("karpenter.sh/v1", "NodePool", &pool.metadata)]
            .into_iter()
            .chain(class.map(|class| reference(&class.api_version, &class.kind, &class.metadata)));
        let of = format!("of NodePool {}", pool.name());
        let stuck = if machines == 1 { format!("1 machine {of} is stuck") } else { format!("{machines} machines {of} are stuck") };
        let summary = example.status.as_ref().map(|s| s.summary.as_str()).unwrap_or_default();
        Some(Summary { cause: incident.cause.clone(), note: format!("{stuck}: {summary}"), regarding: regarding.collect() })
    }

    fn apply(&mut self, object: Object, now: DateTime<Utc>) {
        if let Object::NodeClass(class) = &object {
            self.touched.insert(Subject::Class(class.kind.clone(), class.metadata.name.to_string()));
        }
        // Other entries make other identities: those that are gone are not kept.
        if matches!(&object, Object::AwsAuth(_)) {
            for identity in std::mem::take(&mut self.access).into_keys() {
                self.cluster.forget_access(&identity);
            }
        }
        // Our own Events are no evidence.
        if matches!(&object, Object::Event(event) if event.reporter() == crate::api::FIELD_MANAGER) {
            return;
        }
        let touched = self.cluster.apply(object, now);
        self.touch(touched);
    }

    fn touch(&mut self, touched: Touched) {
        match touched {
            Touched::Subjects(subjects) => self.touched.extend(subjects),
            Touched::Everything => self.touched.extend(self.unsettled.keys().cloned()),
        }
    }

    fn take_pods(&mut self, node: &str, pods: Result<Vec<Object>, ReadFailure>, now: DateTime<Utc>) {
        if let Some(list) = self.pods.get_mut(node) {
            list.answered = true;
        }
        match pods {
            Ok(pods) => {
                let gone: Vec<_> = self.cluster.pods_on(node).map(|p| (p.metadata.namespace.clone(), p.metadata.name.clone())).collect();
                for (namespace, name) in gone {
                    self.cluster.remove(Input::Pods, namespace.as_deref(), &name);
                }
                for pod in pods {
                    self.cluster.apply(pod, now);
                }
                self.mark(Input::Pods, Availability::Read);
            }
            Err(failure) => self.mark(Input::Pods, Availability::Missing(failure.to_string())),
        }
        if let Some(node) = self.cluster.node(node) {
            self.touched.insert(match self.cluster.claim_of_node(node) {
                Some(claim) => Subject::Claim(claim.name().to_owned()),
                None => Subject::Node(node.name().to_owned()),
            });
        }
    }

    fn take_access(&mut self, identity: &Identity, answer: Result<Box<Object>, ReadFailure>, now: DateTime<Utc>) {
        // An answer to what nobody asks any more: aws-auth has changed.
        let Some(asked) = self.access.get_mut(identity) else { return };
        asked.answered = true;
        match answer {
            Ok(review) => {
                self.mark(Input::AccessReviews, Availability::Read);
                let touched = self.cluster.apply(*review, now);
                self.touch(touched);
            }
            Err(failure) => {
                self.cluster.forget_access(identity);
                self.mark(Input::AccessReviews, Availability::Missing(failure.to_string()));
            }
        }
    }

    fn look_at(&mut self, subject: &Subject, now: DateTime<Utc>) {
        let refresh = match self.answer_for(subject, now) {
            Answer::Unwanted => None,
            Answer::AwaitedUntil(at) => return self.look_again(subject, Some(at)),
            Answer::KnownUntil(at) => Some(at),
        };
        let name = diagnosis_name(subject);
        match diagnose::judge(&self.cluster, subject, now, &self.thresholds) {
            Judgement::Sick(diagnosis, again) => {
                self.look_again(subject, again.into_iter().chain(refresh).min());
                self.record(*diagnosis, now);
            }
            Judgement::Waiting(again) => {
                self.look_again(subject, again.into_iter().chain(refresh).min());
                // It waits at another stage, or was touched: neither usable nor stuck. What was said stays, unless it is going away.
                if let Some((outcome, at)) = self.going(subject) {
                    self.close(&name, outcome, at);
                }
            }
            Judgement::Healthy => {
                self.settle(subject);
                let here = self.uid_of(subject);
                let open =
                    self.diagnoses.get(&name).filter(|d| is_open(d)).filter(|d| subject_of(&d.spec.subject).as_ref() == Some(subject));
                let Some(open) = open else { return };
                let is_this = here.as_deref().is_some_and(|uid| same_uid(&open.spec.subject.uid, uid));
                let (outcome, at) =
                    if is_this { self.going(subject).unwrap_or((Outcome::Recovered, now)) } else { (Outcome::Deleted, now) };
                self.close(&name, outcome, at);
            }
        }
    }

    /// A claim is gone. It is judged a last time as if it were still there, because nothing of it stays but what is said now.
    fn on_claim_deleted(&mut self, name: &str, last: Option<Object>, now: DateTime<Utc>) {
        let last = match last {
            Some(Object::NodeClaim(claim)) => Some(claim),
            _ => self.cluster.claim(name).cloned(),
        };
        let subject = Subject::Claim(name.to_owned());
        if self.started
            && let Some(mut claim) = last
        {
            let deleted = *claim.metadata.deletion_timestamp.get_or_insert(now);
            let outcome = outcome_of(&claim, deleted);
            let uid = claim.metadata.uid.clone();
            self.cluster.apply(Object::NodeClaim(claim), now);
            if let Judgement::Sick(diagnosis, _) = diagnose::judge(&self.cluster, &subject, now, &self.thresholds) {
                self.record(*diagnosis, now);
            }
            if self.diagnoses.get(name).is_some_and(|d| same_uid(&d.spec.subject.uid, &uid)) {
                self.close(name, outcome, deleted);
            }
        }
        self.settle(&subject);
        let touched = self.cluster.remove(Input::NodeClaims, None, name);
        self.touch(touched);
    }

    /// Records a verdict, and orders it to be written where it says something new.
    fn record(&mut self, mut new: NodeDiagnosis, now: DateTime<Utc>) {
        let Some(name) = new.metadata.name.clone() else { return };
        let Some(known) = self.diagnoses.get(&name) else {
            if !self.is_spoken_for(&new, now) {
                self.number(&mut new);
                self.order(new, false, true);
            }
            return;
        };
        if !same_uid(&known.spec.subject.uid, &new.spec.subject.uid) || known.spec.subject.kind != new.spec.subject.kind {
            // A Node's diagnosis never takes the place of what is left of a NodeClaim of the same name.
            if known.spec.subject.kind == new.spec.subject.kind {
                self.number(&mut new);
                self.order(new, true, true);
            }
            return;
        }
        same::keep_remediation(&mut new, known);
        match outcome(known) {
            // An earlier verdict ended with the deletion; that the machine hangs in it is news.
            Some(Outcome::Deleted) if outcome(&new).is_none() => return self.order(new, false, true),
            Some(Outcome::Terminated | Outcome::Deleted) => return,
            Some(Outcome::Recovered) => {
                // The same machine fell ill again: that makes one more.
                self.number(&mut new);
                return self.order(new, false, true);
            }
            None => {}
        }
        if outcome(&new).is_some() && !outweighs(&new, known) {
            // Nodes and events go before their claim: the verdict from when they were there stands, and ends now.
            let ended = new.status.as_ref().and_then(|s| Some((s.outcome?, s.ended_at?)));
            if let Some((outcome, at)) = ended {
                self.close(&name, outcome, at);
            }
            return;
        }
        if stands(known, &new) {
            return;
        }
        same::keep(&mut new, known);
        if !same(known, &new) {
            let announces = cause(known) != cause(&new);
            if announces {
                self.number(&mut new);
            }
            self.order(new, false, announces);
        }
    }

    /// How many machines failed by the same cause before, as far as the objects tell.
    fn number(&self, new: &mut NodeDiagnosis) {
        let earlier = self.diagnoses.machines(&Incident::of(new));
        if let Some(status) = &mut new.status {
            status.recurrences = status.recurrences.max(earlier);
        }
    }

    /// Ends an open diagnosis.
    fn close(&mut self, name: &str, outcome: Outcome, at: DateTime<Utc>) {
        let Some(mut diagnosis) = self.diagnoses.get(name).filter(|d| is_open(d)).cloned() else { return };
        if diagnosis.status.is_none() {
            // Whoever wrote it died before the verdict, and there is no machine to judge any more.
            self.diagnoses.remove(name);
            return self.delete(name.to_owned());
        }
        let why = self.cluster.claim(&diagnosis.spec.subject.name).and_then(|claim| deletion_reason::reason(&self.cluster, claim, at));
        diagnose::close(&mut diagnosis, outcome, at, why.as_deref());
        self.order(diagnosis, false, false);
    }

    fn order(&mut self, mut diagnosis: NodeDiagnosis, replaces: bool, announces: bool) {
        let Some(name) = diagnosis.metadata.name.clone() else { return };
        let ends = outcome(&diagnosis);
        if is_final(&diagnosis) {
            last_words::keep(&mut diagnosis, &self.cluster);
        }
        if announces && ends.is_none() {
            self.joined.insert(Incident::of(&diagnosis));
        }
        let first = announces && self.diagnoses.get(&name).is_none_or(|before| !is_open(before));
        self.hand_over(Write { diagnosis: Arc::new(diagnosis), replaces, announces, first, ends });
    }

    /// Records it as said, and orders it to be written.
    fn hand_over(&mut self, mut write: Write) {
        let Some(name) = write.diagnosis.metadata.name.clone() else { return };
        self.diagnoses.insert(Arc::clone(&write.diagnosis));
        if self.leads {
            self.orders.push(Order::Write(Box::new(write.clone())));
        }
        if let Some(Pending::Write(before)) = self.pending.get(&name) {
            write.overtake(before);
        }
        self.pending.insert(name, Pending::Write(Box::new(write)));
    }

    fn delete(&mut self, name: String) {
        let delete = Delete { uid: self.held.get(&name).map(|held| held.uid.clone()), name: name.clone() };
        if self.leads {
            self.orders.push(Order::Delete(delete.clone()));
        }
        self.pending.insert(name, Pending::Delete(delete));
    }

    /// A claim that never launched and is gone already says nothing new while another one of its pool has the same cause.
    fn is_spoken_for(&self, new: &NodeDiagnosis, now: DateTime<Utc>) -> bool {
        let launch = |d: &NodeDiagnosis| d.status.as_ref().is_some_and(|s| s.stage == Stage::Launch);
        let recent = |d: &NodeDiagnosis| d.status.as_ref().and_then(|s| s.ended_at).is_none_or(|at| now - at < NEVER_LAUNCHED_AGAIN);
        outcome(new).is_some() && launch(new) && self.diagnoses.of(&Incident::of(new)).any(|d| launch(d) && recent(d))
    }

    /// How and when a claim that is being deleted ends.
    fn going(&self, subject: &Subject) -> Option<(Outcome, DateTime<Utc>)> {
        let Subject::Claim(name) = subject else { return None };
        let claim = self.cluster.claim(name)?;
        let deleted = claim.metadata.deletion_timestamp?;
        Some((outcome_of(claim, deleted), deleted))
    }

    fn uid_of(&self, subject: &Subject) -> Option<String> {
        let meta: &Meta = match subject {
            Subject::Claim(name) => &self.cluster.claim(name)?.metadata,
            Subject::Node(name) => &self.cluster.node(name)?.metadata,
            Subject::Pool(name) => &self.cluster.pool(name)?.metadata,
            Subject::Class(kind, name) => &self.cluster.class(kind, name)?.class.metadata,
        };
        Some(meta.uid.to_string())
    }

    fn look_again(&mut self, subject: &Subject, at: Option<DateTime<Utc>>) {
        // Whole seconds, as the clock is: one that has not quite come would be looked at in vain.
        let at = at.map(|at| if at.trunc_subsecs(0) < at { at.trunc_subsecs(0) + TimeDelta::seconds(1) } else { at });
        if let Some(Some(before)) = self.unsettled.insert(subject.clone(), at) {
            self.due.remove(&(before, subject.clone()));
        }
        if let Some(at) = at {
            self.due.insert((at, subject.clone()));
        }
    }

    fn settle(&mut self, subject: &Subject) {
        if let Some(Some(at)) = self.unsettled.remove(subject) {
            self.due.remove(&(at, subject.clone()));
        }
        let node = match subject {
            // The pods of a Node with a claim are the claim's.
            Subject::Node(name) => self.cluster.node(name).filter(|n| self.cluster.claim_of_node(n).is_none()).map(|n| n.name().to_owned()),
            Subject::Claim(name) => {
                self.cluster.claim(name).and_then(|claim| nodes_of(&self.cluster, claim).first().map(|node| node.name().to_owned()))
            }
            Subject::Pool(_) | Subject::Class(..) => None,
        };
        if let Some(node) = node
            && self.pods.remove(&node).is_some()
        {
            let held: Vec<_> = self.cluster.pods_on(&node).map(|p| (p.metadata.namespace.clone(), p.metadata.name.clone())).collect();
            for (namespace, name) in held {
                self.cluster.remove(Input::Pods, namespace.as_deref(), &name);
            }
        }
    }

    /// Sees to it that the pods of a stuck machine, or the rights of its kubelet, are known before it is judged.
    fn answer_for(&mut self, subject: &Subject, now: DateTime<Utc>) -> Answer {
        let Some(case) = Case::of(&self.cluster, subject, now, &self.thresholds) else { return Answer::Unwanted };
        let waited = now - case.wait.since;
        if waited < case.wait.proven {
            return Answer::Unwanted;
        }
        let fresh = (waited / 8).clamp(FRESH, FRESH_AT_MOST);
        let (order, answer) = if let Some(node) = case.node.filter(|_| reads_pods(case.stage())).map(|n| n.name().to_owned()) {
            (Order::ListPods(node.clone()), ask(&mut self.pods, node, now, fresh))
        } else if let Some(identity) = rules::identity_in_doubt(&case) {
            (Order::ReviewAccess(identity.clone()), ask(&mut self.access, identity, now, fresh))
        } else {
            return Answer::Unwanted;
        };
        let (is_asked, answer) = answer;
        self.orders.extend(is_asked.then_some(order));
        answer
    }
}

/// Whether it is to be asked now, and what that means for the verdict.
fn ask<K: Ord>(asked: &mut BTreeMap<K, Asked>, what: K, now: DateTime<Utc>, fresh: TimeDelta) -> (bool, Answer) {
    let Some(before) = asked.get_mut(&what) else {
        asked.insert(what, Asked { at: now, answered: false });
        return (true, Answer::AwaitedUntil(now + ANSWER_WITHIN));
    };
    let good_until = before.at + if before.answered { fresh } else { ANSWER_WITHIN };
    if now >= good_until {
        before.at = now;
        return (true, Answer::KnownUntil(now + fresh));
    }
    (false, if before.answered { Answer::KnownUntil(good_until) } else { Answer::AwaitedUntil(good_until) })
}

/// Whether any rule for this stage reads pods.
fn reads_pods(stage: Stage) -> bool {
    rules::of_stage(stage).is_some_and(|of_stage| of_stage.reads.contains(&Input::Pods))
}

/// Whether the last verdict says more than the one that stands.
fn outweighs(last: &NodeDiagnosis, standing: &NodeDiagnosis) -> bool {
    let known = |d: &NodeDiagnosis| cause(d).is_some_and(|c| c != rules::unknown::CAUSE);
    let confidence = |d: &NodeDiagnosis| d.status.as_ref().map(|s| s.confidence);
    known(last) && (!known(standing) || confidence(last) > confidence(standing)) && confidence(last) > Some(Confidence::Possible)
}

/// What AWS told before a restart, or to the replica that led before, stands until AWS has told this one something.
fn stands(known: &NodeDiagnosis, new: &NodeDiagnosis) -> bool {
    let (Some(known), Some(new)) = (&known.status, &new.status) else { return false };
    let told = known.confidence == Confidence::Certain && told_by_aws::is_told(known);
    told && new.outcome.is_none() && known.stage == new.stage && told_by_aws::leaves_open(new) && !told_by_aws::is_told(new)
}

fn outcome_of(claim: &NodeClaim, deleted: DateTime<Utc>) -> Outcome {
    if stage::timed_out(claim, deleted) { Outcome::Terminated } else { Outcome::Deleted }
}

impl Write {
    /// Takes over what an earlier one, not carried out yet, had still to do.
    pub fn overtake(&mut self, earlier: &Self) {
        self.replaces |= earlier.replaces;
        self.announces |= earlier.announces;
    }
}

/// Ended for good: what recovered may fall ill again.
fn is_final(diagnosis: &NodeDiagnosis) -> bool {
    matches!(outcome(diagnosis), Some(Outcome::Terminated | Outcome::Deleted))
}

fn is_open(diagnosis: &NodeDiagnosis) -> bool {
    outcome(diagnosis).is_none()
}

fn outcome(diagnosis: &NodeDiagnosis) -> Option<Outcome> {
    diagnosis.status.as_ref().and_then(|s| s.outcome)
}

fn cause(diagnosis: &NodeDiagnosis) -> Option<&str> {
    diagnosis.status.as_ref().map(|s| &*s.cause)
}

/// Objects without UID come from hands and tests: they are the same if their names are.
fn same_uid(a: &str, b: &str) -> bool {
    a.is_empty() || b.is_empty() || a == b
}

fn subject_of(reference: &ObjectRef) -> Option<Subject> {
    let name = reference.name.clone();
    match reference.kind.as_str() {
        "NodeClaim" => Some(Subject::Claim(name)),
        "Node" => Some(Subject::Node(name)),
        "NodePool" => Some(Subject::Pool(name)),
        kind if kind.ends_with("NodeClass") => Some(Subject::Class(kind.to_owned(), name)),
        _ => None,
    }
}

/// The name that [`Case::diagnosis_name`] gives, also for a subject that is gone.
fn diagnosis_name(subject: &Subject) -> String {
    match subject {
        Subject::Claim(name) | Subject::Node(name) => name.clone(),
        Subject::Pool(name) => format!("nodepool-{name}"),
        Subject::Class(kind, name) => format!("{}-{name}", kind.to_ascii_lowercase()),
    }
}
