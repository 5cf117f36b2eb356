//! What the operator decides, without IO and without a clock: changes go in, orders come out.
//!
//! A change alters the cluster and touches subjects (`schedule`). At the next look each is judged, after what its rules
//! want to know was asked (`questions`). What the verdict says that was not said (`record`, `verdict_diff`), and that
//! is not a machine on its way out of trouble (`repaired`), is remembered (`history`), summed up (`incidents`), and
//! ordered (`outbox`). A diagnosis that is already in the cluster is taken up as it is, so a restart writes nothing.
//!
//! A replica that does not lead decides the same, and keeps its orders until the cluster shows that the leader carried
//! them out. When it takes over, what is left of them is what the leader did not come to.

mod advice;
pub mod change;
mod history;
mod incidents;
mod last_words;
mod node_verdicts;
mod outbox;
mod pool_incidents;
mod pool_pods;
mod pool_verdict;
mod questions;
mod record;
mod repaired;
mod schedule;
mod standing;
#[cfg(test)]
mod tests;
mod verdict_diff;

use crate::api::{NodeDiagnosis, NodeDiagnosisStatus, Outcome};
use crate::case::Case;
use crate::case::judging::Judging;
use crate::case::stage::Thresholds;
use crate::case::timeout;
use crate::cluster_state::{Availability, ClusterState, Subject, Touched};
use crate::diagnose::log_source::{self, LogSource};
use crate::diagnose::{self, Judgement};
use crate::lint::LintFinding;
use crate::objects::input::{Input, Object};
use crate::objects::sink::Sink;
use crate::objects::{ApiServerFacts, Node};
use crate::remediation::Remark;
use change::{Change, ReadFailure};
use chrono::{DateTime, TimeDelta, Utc};
use history::History;
pub use history::Keep;
pub use incidents::IncidentSummary;
use incidents::Incidents;
pub use node_verdicts::NodeVerdict;
pub use outbox::{Delete, Order, Write};
use outbox::{GoneMeans, Outbox};
use pool_incidents::PoolIncidents;
use questions::{AnswerState, Questions};
use readers::aws_auth::identity::Identity;
use record::Update;
use repaired::Repaired;
use schedule::Schedule;
pub use standing::FindingNotice;
use standing::Standing;
use std::collections::BTreeSet;
use std::sync::Arc;
pub use verdict_diff::same;

/// A verdict of these last minutes may lack its Event. A new leader begins within seconds, but writes that fail are
/// tried again for a while.
const ANNOUNCE_AGAIN: TimeDelta = TimeDelta::minutes(5);

/// The cluster, and what was said about it.
#[derive(Debug)]
pub struct Triage {
    cluster: ClusterState,
    thresholds: Thresholds,
    started: bool,
    schedule: Schedule,
    questions: Questions,
    repaired: Repaired,
    /// As in the cluster or on the way there. Ended ones too.
    diagnoses: History,
    incidents: Incidents,
    pools: PoolIncidents,
    outbox: Outbox,
    standing: Standing,
    /// Counts the changes of what an object of the configuration is judged with.
    configuration: u64,
}

impl Triage {
    pub fn new(thresholds: Thresholds, keep: Keep) -> Self {
        Self {
            cluster: ClusterState::default(),
            thresholds,
            started: false,
            schedule: Schedule::default(),
            questions: Questions::default(),
            repaired: Repaired::default(),
            diagnoses: History::new(keep),
            incidents: Incidents::default(),
            pools: PoolIncidents::default(),
            outbox: Outbox::default(),
            standing: Standing::default(),
            configuration: 0,
        }
    }

    pub const fn cluster(&self) -> &ClusterState {
        &self.cluster
    }

    /// The open diagnoses of machines, NodePools and node classes. Those that repeat the verdict of a machine are left
    /// out.
    pub fn open(&self) -> impl Iterator<Item = &NodeDiagnosis> {
        self.diagnoses.open().filter(|diagnosis| !diagnosis.speaks_for_machines())
    }

    /// Changes whenever a diagnosis changes. Until then, counts over all diagnoses stay valid.
    pub const fn revision(&self) -> u64 {
        self.diagnoses.revision()
    }

    /// Every diagnosis, ended ones too.
    pub fn diagnoses(&self) -> impl Iterator<Item = &NodeDiagnosis> + Clone {
        self.diagnoses.all()
    }

    fn judging(&self, now: DateTime<Utc>) -> Judging<'_> {
        Judging::new(&self.cluster, now, &self.thresholds)
    }

    /// The subjects that are stuck and whose verdicts are `wanted`, as they stand now.
    pub fn cases(
        &self,
        now: DateTime<Utc>,
        wanted: impl Fn(&NodeDiagnosisStatus) -> bool,
    ) -> impl Iterator<Item = (Case<'_>, &NodeDiagnosisStatus)> {
        self.open().filter_map(move |diagnosis| {
            let verdict = diagnosis.status.as_ref().filter(|verdict| wanted(verdict))?;
            Some((Case::of(self.judging(now), &Subject::of(&diagnosis.spec.subject)?)?, verdict))
        })
    }

    /// Karpenter's log, if pods wait for a NodePool that has no verdict.
    pub fn log_of_waiting_pods(&self, now: DateTime<Utc>) -> Option<LogSource> {
        log_source::of_waiting_pods(self.judging(now), self.diagnoses.open())
    }

    /// The Nodes whose nodewhy condition has to change. If no conditions are wanted, the Nodes that still have one.
    /// one.
    pub fn node_verdicts(&self, are_wanted: bool, now: DateTime<Utc>) -> Vec<NodeVerdict> {
        node_verdicts::changes(self.open().filter(|_| are_wanted), &self.cluster, now)
    }

    /// NodeClaims that are gone, never registered, and have no diagnosis because nodewhy was not running.
    pub fn never_judged(&self) -> impl Iterator<Item = &str> {
        self.cluster.gone_unregistered().filter(|name| self.diagnoses.get(name).is_none())
    }

    /// Whether the cluster has shown the diagnosis as it is here.
    pub fn is_written(&self, name: &str) -> bool {
        self.outbox.is_written(name)
    }

    /// Notes in a diagnosis what remediation did or refused; `None` where it says so already.
    pub fn note(&mut self, remark: &Remark, now: DateTime<Utc>) -> Option<Arc<NodeDiagnosis>> {
        let diagnosis = Arc::new(record::noted(&self.diagnoses, remark, now)?);
        // The story of a machine that has ended is not told a second time.
        self.hand_over(Write {
            diagnosis: Arc::clone(&diagnosis),
            replaces: false,
            announces: false,
            first: false,
            ends: None,
            in_vain: None,
        });
        Some(diagnosis)
    }

    /// When to look again, even if nothing changes.
    pub fn next_look(&self) -> Option<DateTime<Utc>> {
        [self.schedule.next_due(), self.diagnoses.next_end(), self.pools.next_due()].into_iter().flatten().min()
    }

    /// When to check the configuration. `None` if it has not changed since the last check.
    pub fn next_check(&self) -> Option<DateTime<Utc>> {
        self.standing.due()
    }

    /// Checks node classes, NodePools and aws-auth for mistakes that will keep new nodes from joining, if they changed.
    /// Says which findings came and which went. Calls `tells` after each node class.
    pub fn check_configuration(&mut self, now: DateTime<Utc>, tells: &dyn Fn()) -> Vec<FindingNotice> {
        let is_due = self.started && self.standing.due().is_some_and(|at| at <= now);
        if is_due { self.standing.check(&mut self.cluster, now, tells) } else { Vec::new() }
    }

    /// The mistakes of the configuration that the last check found.
    pub fn findings(&self) -> impl Iterator<Item = &LintFinding> {
        self.standing.findings()
    }

    /// Changes whenever a finding comes or goes.
    pub const fn findings_revision(&self) -> u64 {
        self.standing.revision()
    }

    /// Changes whenever [`ClusterState::surroundings`] may have changed. It never falls.
    pub const fn configuration_revision(&self) -> u64 {
        self.configuration
    }

    /// Notices of all findings, for a new leader. The last leader may not have sent them.
    pub fn all_findings(&self) -> Vec<FindingNotice> {
        self.standing.all()
    }

    /// The first lists are complete: from now on verdicts are given. Half a cluster would give false ones.
    pub fn start(&mut self) {
        self.started = true;
        self.schedule.touch(self.cluster.subjects());
        self.schedule.touch(self.diagnoses.open().filter_map(|d| Subject::of(&d.spec.subject)));
        self.incidents.start(&self.diagnoses);
    }

    /// From now on this replica writes: first what the one before it did not come to.
    pub fn lead(&mut self) {
        for diagnosis in self.outbox.lead() {
            self.incidents.tell_again(&diagnosis);
        }
    }

    /// Sends the Events of recent verdicts again, because the last leader may have died between a verdict and its
    /// Event. The API server keeps one of each.
    pub fn announce_again(&mut self, now: DateTime<Utc>) {
        let is_recent = |diagnosis: &&Arc<NodeDiagnosis>| {
            diagnosis.status.as_ref().is_some_and(|status| {
                let said = status.conditions.iter().map(|condition| condition.last_transition_time).max();
                said.is_some_and(|at| now - at < ANNOUNCE_AGAIN)
            })
        };
        let of_machines = self.diagnoses.shared().filter(|d| d.is_open() && !d.speaks_for_machines());
        let recent: Vec<_> = of_machines.filter(is_recent).cloned().collect();
        self.outbox.announce(recent);
    }

    /// From now on another replica writes.
    pub const fn follow(&mut self) {
        self.outbox.follow();
    }

    /// Takes in a change.
    pub fn take(&mut self, change: Change, now: DateTime<Utc>) {
        match change {
            Change::Applied(object) => self.apply(*object, now),
            Change::Removed { input: Input::NodeClaims, name, last, .. } => {
                self.on_claim_deleted(&name, last.map(|o| *o), now);
            }
            Change::Removed { input, namespace, name, last } => {
                if Standing::concerns(input) {
                    self.configuration += 1;
                    self.standing.change(now);
                }
                if input == Input::Nodes {
                    self.questions.forget_node(&name);
                }
                self.schedule.take(match last.as_deref() {
                    Some(Object::NodeClass(class)) => self.cluster.remove_class(class.group(), &class.kind, &name),
                    _ if input == Input::AwsAuth => self.cluster.remove_aws_auth(now),
                    _ => self.cluster.remove(input, namespace.as_deref(), &name),
                });
            }
            Change::Pods { node, pods } => self.take_pods(&node, pods, now),
            Change::Access { identity, answer } => self.take_access(&identity, answer, now),
            Change::Diagnosis(diagnosis) => self.take_diagnosis(*diagnosis),
            Change::DiagnosisGone(name) => self.miss_diagnosis(&name),
            Change::DiagnosesListed(names) => self.take_list(&names),
            Change::ApiServer(facts) => self.take_api_server(facts, now),
            Change::Unreadable { .. } | Change::Source { .. } => {}
        }
    }

    /// Says whether an input can be read.
    pub fn mark(&mut self, input: Input, availability: Availability) {
        let before = self.cluster.missing(input).map(str::to_owned);
        self.cluster.mark(input, availability);
        if self.cluster.missing(input) != before.as_deref() {
            self.schedule.take(Touched::Everything);
        }
    }

    /// Forgets the node classes of a kind that is not watched any more.
    pub fn forget_classes(&mut self, group: &str, kind: &str) {
        self.configuration += 1;
        self.schedule.take(self.cluster.remove_classes_of(group, kind));
    }

    /// Looks at every subject that a change touched or whose time has come, and says what to do.
    pub fn look(&mut self, now: DateTime<Utc>) -> Vec<Order> {
        self.look_telling(now, || ())
    }

    /// Like `look`, and calls `tells` after each subject, because judging thousands takes long.
    pub fn look_telling(&mut self, now: DateTime<Utc>, tells: impl Fn()) -> Vec<Order> {
        if self.started {
            let mut subjects = self.schedule.next(&self.cluster, now);
            let classes: Vec<Subject> = subjects.iter().filter_map(|s| self.cluster.leaving_class_of(s)).collect();
            subjects.extend(classes);
            for subject in subjects {
                self.look_at(&subject, now);
                tells();
            }
            for name in self.diagnoses.forget(now).into_iter().filter_map(|d| d.metadata.name.clone()) {
                self.outbox.delete(name);
            }
            for saying in self.pools.look(&self.diagnoses, &self.cluster, now) {
                self.say(saying);
            }
            self.outbox.summarize(self.incidents.summaries(&self.diagnoses, &self.cluster));
        }
        self.outbox.take_orders()
    }

    fn apply(&mut self, object: Object, now: DateTime<Utc>) {
        match &object {
            Object::NodeClass(class) => {
                self.schedule.touch([Subject::Class(class.kind.clone(), class.metadata.name.to_string())]);
            }
            Object::NodeClaim(claim) => self.pools.touch_lingering(claim),
            Object::AwsAuth(_) => self.questions.forget_access(&mut self.cluster),
            // Our own Events are no evidence.
            Object::Event(event) if event.reporter() == crate::api::FIELD_MANAGER => return,
            _ => {}
        }
        let is_news = self.standing.is_news(&object, &self.cluster);
        let is_karpenter = matches!(object, Object::Deployment(_));
        let touched = self.cluster.apply(object, now);
        if is_news || touched == Touched::Everything {
            self.configuration += 1;
        }
        // Another version of Karpenter judges the same configuration differently.
        if is_news || is_karpenter && touched == Touched::Everything {
            self.standing.change(now);
        }
        self.schedule.take(touched);
    }

    fn take_pods(&mut self, node: &str, pods: Result<Vec<Object>, ReadFailure>, now: DateTime<Utc>) {
        let availability = self.questions.take_pods(&mut self.cluster, node, pods, now);
        if node.is_empty() {
            // Of the pods on a Node it says nothing.
            self.schedule.touch(pool_pods::pools(&self.cluster, now).iter().cloned().map(Subject::Pool));
            let nodes = self.questions.nodes().filter_map(|name| self.cluster.node(name));
            self.schedule.touch(nodes.map(|node| machine(&self.cluster, node)));
            return;
        }
        self.mark(Input::Pods, availability);
        if let Some(node) = self.cluster.node(node) {
            self.schedule.touch([machine(&self.cluster, node)]);
        }
    }

    /// An upgrade of the cluster changes what fits it: kubelets, and the configuration of new nodes.
    fn take_api_server(&mut self, facts: ApiServerFacts, now: DateTime<Utc>) {
        if *self.cluster.api_server() == facts {
            return;
        }
        self.cluster.of_api_server(facts);
        self.configuration += 1;
        self.standing.change(now);
        self.schedule.take(Touched::Everything);
    }

    fn take_access(&mut self, identity: &Identity, answer: Result<Box<Object>, ReadFailure>, now: DateTime<Utc>) {
        if !self.questions.has_answer(identity) {
            return;
        }
        match answer {
            Ok(review) => {
                self.mark(Input::AccessReviews, Availability::Read);
                self.schedule.take(self.cluster.apply(*review, now));
            }
            Err(failure) => {
                self.cluster.forget_access(identity);
                self.mark(Input::AccessReviews, Availability::Missing(failure.to_string()));
            }
        }
    }

    fn take_diagnosis(&mut self, shown: NodeDiagnosis) {
        let Some(name) = shown.metadata.name.clone() else { return };
        // Of no subject, or not called as its subject's is: nothing would ever end it.
        if Subject::of(&shown.spec.subject).is_none_or(|subject| subject.diagnosis_name() != name) {
            return self.outbox.refuse(name, &shown);
        }
        let ours = self.diagnoses.get(&name);
        let here = || self.cluster.uid_of(&Subject::of(&ours?.spec.subject)?);
        if self.outbox.show(&name, &shown, ours, here) {
            self.schedule.touch(Subject::of(&shown.spec.subject).filter(|_| shown.is_open()));
            self.pools.touch(&shown);
            self.diagnoses.insert(Arc::new(shown));
        }
    }

    /// A NodeDiagnosis is gone. While its machine is stuck, nodewhy writes it again.
    fn miss_diagnosis(&mut self, name: &str) {
        let ours = self.diagnoses.get(name);
        match (self.outbox.miss(name, ours), ours.cloned()) {
            (GoneMeans::Open, Some(ours)) => {
                self.schedule.touch(Subject::of(&ours.spec.subject));
                self.say(record::unannounced(ours, false));
            }
            (GoneMeans::Ended, _) => drop(self.diagnoses.remove(name)),
            _ => {}
        }
    }

    /// Writes open diagnoses again that were deleted while the watch was down: no event reports those deletions. A
    /// pending write is not doubled.
    fn take_list(&mut self, names: &BTreeSet<String>) {
        let missing = |d: &&NodeDiagnosis| d.metadata.name.as_ref().is_some_and(|name| !names.contains(name));
        let missing: Vec<_> = self.diagnoses.open().filter(missing).cloned().collect();
        for diagnosis in missing {
            self.say(record::unannounced(diagnosis, false));
        }
        self.outbox.write_again(names);
    }

    fn look_at(&mut self, subject: &Subject, now: DateTime<Utc>) {
        let refresh = match self.prepare(subject, now) {
            AnswerState::Unwanted => None,
            AnswerState::AwaitedUntil(at) => return self.schedule.look_again(subject, Some(at)),
            AnswerState::GoodUntil(at) => Some(at),
        };
        match diagnose::judge(self.judging(now), subject) {
            Judgement::Sick(diagnosis, again) => {
                let stands = self.stands_until(subject, &diagnosis, now);
                self.schedule.look_again(subject, again.into_iter().chain(refresh).chain(stands).min());
                if stands.is_some() {
                    return;
                }
                self.say(record::judged(&self.diagnoses, &self.cluster, *diagnosis, now));
            }
            Judgement::Waiting(again) => {
                self.repaired.settle(subject);
                self.schedule.look_again(subject, again.into_iter().chain(refresh).min());
                // It waits at another stage, or was touched: neither usable nor stuck. What was said stays, unless it
                // is going away.
                if let Some((outcome, at)) = record::leaving(&self.cluster, subject) {
                    self.close(&subject.diagnosis_name(), outcome, at);
                }
            }
            Judgement::Healthy => {
                self.settle(subject, now);
                if refresh.is_some() {
                    self.schedule.look_again(subject, refresh);
                }
                let name = subject.diagnosis_name();
                let open = self
                    .diagnoses
                    .get(&name)
                    .filter(|d| d.is_open() && Subject::of(&d.spec.subject).as_ref() == Some(subject));
                let Some(open) = open else { return };
                let is_this = self.cluster.uid_of(subject).is_some_and(|uid| open.spec.subject.stands_for(uid));
                if is_this && self.pools.speaks_on(open, &self.diagnoses) {
                    return;
                }
                let (outcome, at) = if is_this {
                    record::leaving(&self.cluster, subject).unwrap_or((Outcome::Recovered, now))
                } else {
                    (Outcome::Deleted, now)
                };
                self.close(&name, outcome, at);
            }
        }
    }

    /// Until when what was said stands, though another cause was found now.
    fn stands_until(&mut self, subject: &Subject, new: &NodeDiagnosis, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let known = self.diagnoses.get(new.metadata.name.as_deref()?).filter(|known| repaired::is_replaced(known, new));
        let Some(known) = known else {
            self.repaired.settle(subject);
            return None;
        };
        let case = Case::of(Judging::new(&self.cluster, now, &self.thresholds), subject)?;
        self.repaired.until(known, &case, &self.thresholds)
    }

    fn prepare(&mut self, subject: &Subject, now: DateTime<Utc>) -> AnswerState {
        let since = match subject {
            Subject::Pool(pool) => pool_pods::since(&self.cluster, pool, now),
            _ => None,
        };
        let (knowledge, orders) = match (since, Case::of(Judging::new(&self.cluster, now, &self.thresholds), subject)) {
            // Without its pods it may be no case yet.
            (Some(since), _) => self.questions.prepare_pool(since, now),
            (None, Some(case)) => self.questions.prepare(&case, now),
            (None, None) => return AnswerState::Unwanted,
        };
        self.outbox.ask(orders);
        knowledge
    }

    /// A claim is gone. It is judged a last time as if it were still there, because nothing of it stays but what is
    /// said now.
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
            let outcome = timeout::outcome(&claim, deleted);
            let uid = claim.metadata.uid.clone();
            self.cluster.apply(Object::NodeClaim(claim), now);
            if let Judgement::Sick(diagnosis, _) = diagnose::judge(self.judging(now), &subject) {
                self.say(record::judged(&self.diagnoses, &self.cluster, *diagnosis, now));
            }
            if self.diagnoses.get(name).is_some_and(|d| d.spec.subject.stands_for(&uid)) {
                self.close(name, outcome, deleted);
            }
        }
        self.settle(&subject, now);
        self.schedule.take(self.cluster.remove(Input::NodeClaims, None, name));
    }

    fn settle(&mut self, subject: &Subject, now: DateTime<Utc>) {
        self.repaired.settle(subject);
        self.schedule.settle(subject);
        self.cluster.forget_logs(subject);
        self.questions.settle(&mut self.cluster, subject, now);
    }

    fn close(&mut self, name: &str, outcome: Outcome, at: DateTime<Utc>) {
        self.say(record::closed(&self.diagnoses, &self.cluster, name, outcome, at));
    }

    fn say(&mut self, saying: Update) {
        match saying {
            Update::Nothing => {}
            Update::Void(name) => {
                self.diagnoses.remove(&name);
                self.outbox.delete(name);
            }
            Update::Changed(said) => {
                let write = said.into_write(&self.diagnoses, &self.cluster);
                if write.announces && write.ends.is_none() {
                    self.incidents.join(&write.diagnosis);
                }
                self.hand_over(write);
            }
        }
    }

    /// Records it as said, and orders it to be written.
    fn hand_over(&mut self, write: Write) {
        self.pools.note(&write);
        self.diagnoses.insert(Arc::clone(&write.diagnosis));
        self.outbox.write(write);
    }
}

/// The machine that a Node is of.
fn machine(cluster: &ClusterState, node: &Node) -> Subject {
    match cluster.claim_of_node(node) {
        Some(claim) => Subject::Claim(claim.name().to_owned()),
        None => Subject::Node(node.name().to_owned()),
    }
}
