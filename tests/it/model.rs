//! The operator's deciding and writing against a cluster in memory, in simulated time: watches that lag, repeat,
//! overtake each other and break off, writes that fail, hang or succeed without saying so, NodeDiagnoses that somebody
//! deletes, restarts at any moment. In the end, whatever happened, the cluster holds the verdicts that a look at its
//! final state gives.
//!
//! `NODEWHY_SEEDS=20000 cargo test --test it model` tries more, `NODEWHY_SEED=17` replays one and says what happens.

mod cluster;
mod life;

use chrono::{DateTime, SubsecRound, Utc};
use cluster::{Cluster, Shared, client, lock};
use engine::api::{NodeDiagnosis, Outcome, Stage};
use engine::case::judging::Judging;
use engine::case::stage::Thresholds;
use engine::cluster_state::{Availability, ClusterState};
use engine::diagnose::diagnose;
use engine::objects::input::Input;
use engine::rules::unknown;
use engine::triage::change::Change;
use engine::triage::{Keep, Order, Triage};
use fastrand::Rng;
use nodewhy::operator::lease::Candidate;
use nodewhy::operator::metrics::Metrics;
use nodewhy::operator::publish::{self, Task, Work};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use testkit::objects;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// A mistake made on purpose, which the comparison must find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// A new list does not say what vanished.
    LosesRemovals,
    /// What a user deletes does not come back.
    IgnoresDeletions,
    /// A write that failed is not tried again: every second order never reaches the publisher.
    DropsOrders,
}

/// One run: the cluster, and the operator that watches it.
struct Run {
    cluster: Shared,
    rng: Rng,
    bug: Bug,
    begun: Instant,
    operator: Operator,
    /// Machines that Karpenter's timeout ended, and whose NodeDiagnosis somebody deleted after that.
    forgotten: BTreeSet<String>,
    /// Machines whose diagnosis did not end with the cause that held them up.
    overwritten: String,
    /// What happens, for one who replays.
    told: Option<String>,
}

struct Operator {
    triage: Triage,
    tasks: mpsc::Sender<Task>,
    changes: mpsc::Receiver<Change>,
    /// Keeps the channel open; the publisher has a weak one.
    _says: mpsc::Sender<Change>,
    publisher: JoinHandle<()>,
    pods: Vec<String>,
    orders: usize,
}

fn first() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().expect("a time")
}

impl Run {
    fn new(seed: u64, bug: Bug, tells: bool) -> Self {
        let cluster = Cluster::new(seed, life::before(objects::over_cluster("")));
        let begun = Instant::now();
        let operator = Operator::start(&cluster, first());
        Self {
            cluster,
            rng: Rng::with_seed(seed),
            bug,
            begun,
            operator,
            forgotten: BTreeSet::new(),
            overwritten: String::new(),
            told: tells.then(String::new),
        }
    }

    fn now(&self) -> DateTime<Utc> {
        (first() + self.begun.elapsed()).trunc_subsecs(0)
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        let now = self.now();
        if let Some(told) = &mut self.told {
            let _ = writeln!(told, "{now} {}", what());
        }
    }

    fn note_change(&mut self, change: Change) {
        self.tell(|| format!("heard {}", short(&change)));
        if self.bug == Bug::IgnoresDeletions && matches!(change, Change::DiagnosisGone(_)) {
            return;
        }
        let now = self.now();
        self.operator.triage.take(change, now);
    }

    fn hear_all(&mut self, said: Vec<Change>) {
        for change in said {
            self.note_change(change);
        }
    }

    /// The operator's turn.
    async fn turn(&mut self) {
        while let Ok(change) = self.operator.changes.try_recv() {
            self.note_change(change);
        }
        let now = self.now();
        for order in self.operator.triage.look(now) {
            self.tell(|| format!("orders {order:?}").chars().take(300).collect());
            let work = match order {
                Order::ListPods(node) => {
                    self.operator.pods.push(node);
                    continue;
                }
                // Nobody answers; the verdict does not wait for long.
                Order::ReviewAccess(_) => continue,
                Order::Write(write) => Work::Write(write),
                Order::Delete(delete) => Work::Delete(delete),
                Order::Summarize(summary) => Work::Summarize(summary),
                Order::Announce(diagnosis) => Work::Announce(diagnosis),
            };
            self.operator.orders += 1;
            if self.bug != Bug::DropsOrders || self.operator.orders.is_multiple_of(2) {
                self.operator.tasks.send(Task { term: 1, work }).await.expect("the publisher lives");
            }
        }
    }

    /// One thing of many.
    async fn step(&mut self) {
        match self.rng.u8(..100) {
            0..35 => {
                let now = self.now();
                life::happen(&mut lock(&self.cluster), now);
            }
            35..75 => {
                let watches = lock(&self.cluster).watches();
                let watch = watches[self.rng.usize(..watches.len())];
                for _ in 0..=self.rng.u8(..4) {
                    let said = lock(&self.cluster).deliver(watch);
                    self.hear_all(said);
                }
            }
            75..79 => {
                let watch =
                    [Some(Input::NodeClaims), Some(Input::Nodes), Some(Input::NodeClasses), None][self.rng.usize(..4)];
                self.tell(|| format!("{watch:?} lists anew"));
                let said = lock(&self.cluster).relist(watch, self.bug == Bug::LosesRemovals);
                self.hear_all(said);
            }
            79..82 => self.answer_pods(),
            82..84 => {
                let diagnoses: Vec<_> = lock(&self.cluster).diagnoses().collect();
                if let Some(diagnosis) = self.rng.choice(&diagnoses) {
                    let name = diagnosis.metadata.name.as_deref().unwrap_or_default();
                    self.tell(|| format!("somebody deletes {name}"));
                    lock(&self.cluster).delete_diagnosis(name);
                    self.forgotten.extend(is_killed(diagnosis).then(|| diagnosis.spec.subject.uid.clone()));
                }
            }
            84 => {
                self.tell(|| "the operator is killed and starts anew".to_owned());
                self.operator.publisher.abort();
                lock(&self.cluster).forget_what_was_shown();
                self.operator = Operator::start(&self.cluster, self.now());
            }
            85..88 => self.repair().await,
            88..97 => sleep(Duration::from_millis(self.rng.u64(..20_000))).await,
            _ => sleep(Duration::from_secs(self.rng.u64(..400))).await,
        }
        self.turn().await;
    }

    async fn show_all(&mut self) {
        let watches = lock(&self.cluster).watches();
        for watch in watches {
            let mut said = lock(&self.cluster).deliver(watch);
            while !said.is_empty() {
                self.hear_all(said);
                said = lock(&self.cluster).deliver(watch);
            }
        }
        // The first turn asks for pods of machines that are new: until they are shown, a verdict is that of before.
        for _ in 0..2 {
            self.answer_pods();
            self.turn().await;
        }
    }

    /// A machine that is stuck is repaired, and passes its stages a moment later: its diagnosis ends with the cause
    /// that held it up, whatever it looked like in between. One that nobody knew may become known before that.
    async fn repair(&mut self) {
        self.show_all().await;
        let stuck: Vec<NodeDiagnosis> =
            self.operator.triage.open().filter(|d| d.spec.node_claim.is_some()).cloned().collect();
        let Some(before) = self.rng.choice(&stuck) else { return };
        let claim = before.spec.subject.name.clone();
        self.tell(|| format!("somebody repairs {claim}"));
        let now = self.now();
        life::repair(&mut lock(&self.cluster), &claim, now);
        self.show_all().await;
        sleep(Duration::from_millis(self.rng.u64(..1_200))).await;
        self.turn().await;
        let now = self.now();
        life::pass(&mut lock(&self.cluster), &claim, now);
        self.show_all().await;
        let cause = |d: &NodeDiagnosis| d.status.as_ref().map(|s| s.cause.clone());
        let after = self.operator.triage.diagnoses().find(|d| d.spec.subject == before.spec.subject);
        let is_known = cause(before).is_some_and(|cause| cause != unknown::CAUSE);
        if let Some(after) = after.filter(|d| is_known && is_ended(d, Outcome::Recovered) && cause(d) != cause(before))
        {
            let _ = writeln!(
                self.overwritten,
                "{claim} was held up by {:?} and ended as {:?}",
                cause(before),
                cause(after)
            );
        }
    }

    /// A cluster without running pods.
    fn answer_pods(&mut self) {
        for node in std::mem::take(&mut self.operator.pods) {
            self.note_change(Change::Pods { node, pods: Ok(Vec::new()) });
        }
    }

    /// Nothing more goes wrong, nothing more happens, and time goes by.
    async fn settle(&mut self) {
        lock(&self.cluster).faulty = false;
        let until = self.now() + life::PATIENCE;
        // What never comes to rest shows in the writes that are counted then.
        let at_last = until + life::PATIENCE;
        while self.now() < until || (!lock(&self.cluster).settled() && self.now() < at_last) {
            let watches = lock(&self.cluster).watches();
            for watch in watches {
                loop {
                    let said = lock(&self.cluster).deliver(watch);
                    if said.is_empty() {
                        break;
                    }
                    self.hear_all(said);
                }
            }
            self.answer_pods();
            self.turn().await;
            sleep(Duration::from_secs(10)).await;
        }
    }

    /// What is wrong in the end.
    fn faults(&self) -> Option<String> {
        let now = self.now();
        let cluster = lock(&self.cluster);
        let mut state = ClusterState::default();
        for input in Input::ALL.into_iter().filter(|input| self.operator.triage.cluster().missing(*input).is_none()) {
            state.mark(input, Availability::Read);
        }
        for object in cluster.objects() {
            state.apply(object, now);
        }
        // What was said of a machine that ends is of the past, and may be forgotten.
        // A verdict that the registration timeout has ended stays, even where the deletion hangs afterwards.
        let open = |d: &NodeDiagnosis| d.status.as_ref().is_none_or(|s| s.outcome.is_none());
        let from_scratch = diagnose(Judging::new(&state, now, &Thresholds::default()));
        let killed = cluster.diagnoses().filter(is_killed).map(|d| d.spec.subject.uid);
        let ended: BTreeSet<_> = killed.chain(self.forgotten.iter().cloned()).collect();
        let hangs = |d: &NodeDiagnosis| {
            d.status.as_ref().is_some_and(|s| s.stage == Stage::Terminate) && ended.contains(&d.spec.subject.uid)
        };
        let expected: BTreeMap<String, String> =
            from_scratch.iter().filter(|d| open(d) && !hangs(d)).map(essence).collect();
        let of_itself = |d: &NodeDiagnosis| open(d) && !d.speaks_for_machines();
        let written: BTreeMap<String, String> = cluster.diagnoses().filter(of_itself).map(|d| essence(&d)).collect();
        let mut faults = self.overwritten.clone();
        faults += &miscounted(&cluster.diagnoses().filter(open).collect::<Vec<_>>());
        for name in expected.keys().chain(written.keys()).collect::<BTreeSet<_>>() {
            if expected.get(name) != written.get(name) {
                let _ = writeln!(
                    faults,
                    "{name}: a look from scratch says {:?}, the cluster holds {:?}",
                    expected.get(name),
                    written.get(name)
                );
            }
        }
        (!faults.is_empty()).then_some(faults)
    }
}

impl Operator {
    /// Starts with full lists, as after the first round of the watches.
    fn start(cluster: &Shared, now: DateTime<Utc>) -> Self {
        let (says, changes) = mpsc::channel(1024);
        let client = client(cluster);
        let (mut candidate, leads) = Candidate::new(None);
        candidate.stand().expect("no thread");
        let (tasks, publisher) =
            publish::start(client, "model".to_owned(), leads, Arc::new(Metrics::default()), says.downgrade());
        let mut triage = Triage::new(Thresholds::default(), Keep::default());
        for input in Input::ALL.into_iter().filter(|input| *input != Input::Pods) {
            triage.mark(input, Availability::Read);
        }
        let lists = Input::ALL.into_iter().map(Some).chain([None]);
        for change in lists.flat_map(|watch| lock(cluster).relist(watch, false)) {
            triage.take(change, now);
        }
        triage.start();
        triage.lead();
        Self { triage, tasks, changes, _says: says, publisher, pods: Vec::new(), orders: 0 }
    }
}

/// NodePools of which something else is said than that so many of their machines are stuck.
fn miscounted(open: &[NodeDiagnosis]) -> String {
    let mut faults = String::new();
    let pool = |d: &NodeDiagnosis| d.spec.node_pool.as_ref().map(|p| p.name.clone());
    let (of_pools, others): (Vec<_>, Vec<_>) = open.iter().partition(|d| d.spec.subject.kind == "NodePool");
    let machines = |name| others.iter().filter(|d| d.spec.subject.kind != "EC2NodeClass" && pool(d) == name).count();
    for name in open.iter().map(pool).collect::<BTreeSet<_>>().into_iter().flatten() {
        let machines = machines(Some(name.clone()));
        let of_pool = of_pools.iter().find(|d| pool(d).as_ref() == Some(&name)).and_then(|d| d.status.as_ref());
        let said = of_pool.and_then(|status| Some(status.machines.as_ref()?.stuck as usize));
        if said.map_or(machines > 1, |said| said != machines) {
            let _ = writeln!(faults, "{machines} machines of NodePool {name} are stuck, it says {said:?}");
        }
    }
    faults
}

fn is_killed(diagnosis: &NodeDiagnosis) -> bool {
    is_ended(diagnosis, Outcome::Terminated)
}

fn is_ended(diagnosis: &NodeDiagnosis, how: Outcome) -> bool {
    diagnosis.status.as_ref().is_some_and(|s| s.outcome == Some(how))
}

/// Everything that must be as a look from scratch finds it. Times, counts and what was said of it before are of the
/// past.
fn essence(diagnosis: &NodeDiagnosis) -> (String, String) {
    let name = diagnosis.metadata.name.clone().unwrap_or_default();
    let said = diagnosis.status.as_ref().map(|s| {
        let evidence: Vec<_> = s.evidence.iter().map(|e| format!("{} {}", e.object, e.field)).collect();
        format!(
            "{:?} {} {:?} {:?} {evidence:?}",
            s.stage,
            s.cause,
            s.confidence,
            s.blame.as_ref().map(|b| (&b.object, &b.field))
        )
    });
    (name, format!("{} {said:?}", diagnosis.spec.subject.uid))
}

fn short(change: &Change) -> String {
    format!("{change:?}").chars().take(200).collect()
}

/// Runs one seed, and says what is wrong in the end.
fn run(seed: u64, bug: Bug, tells: bool) -> Option<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime");
    runtime.block_on(async {
        let mut run = Run::new(seed, bug, tells);
        for _ in 0..150 {
            run.step().await;
        }
        run.settle().await;
        let faults = run.faults().map(|faults| format!("{}\n{faults}", run.told.take().unwrap_or_default()));
        if faults.is_none() {
            // At rest nothing is written.
            let before = lock(&run.cluster).writes;
            sleep(Duration::from_mins(10)).await;
            run.turn().await;
            sleep(Duration::from_mins(1)).await;
            let written = lock(&run.cluster).writes - before;
            return (written > 0).then(|| format!("{written} writes at rest"));
        }
        faults
    })
}

fn seeds(default: u64) -> std::ops::Range<u64> {
    let of = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    match of("NODEWHY_SEED") {
        Some(one) => one..one + 1,
        None => 0..of("NODEWHY_SEEDS").unwrap_or(default),
    }
}

#[test]
fn whatever_happens_the_cluster_holds_what_a_look_from_scratch_finds() {
    let tells = std::env::var_os("NODEWHY_SEED").is_some();
    let failed: Vec<_> =
        seeds(300).filter_map(|seed| run(seed, Bug::None, tells).map(|faults| (seed, faults))).collect();
    let first = failed
        .iter()
        .take(3)
        .map(|(seed, faults)| format!("NODEWHY_SEED={seed}\n{faults}"))
        .collect::<Vec<_>>()
        .join("\n");
    assert!(failed.is_empty(), "{} seeds fail, the first:\n{first}", failed.len());
}

#[test]
fn a_mistake_made_on_purpose_is_found() {
    for bug in [Bug::LosesRemovals, Bug::IgnoresDeletions, Bug::DropsOrders] {
        assert!((0..300).any(|seed| run(seed, bug, false).is_some()), "{bug:?} is not found");
    }
}
