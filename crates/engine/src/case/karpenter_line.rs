//! The line in front of Karpenter: machines whose next step is Karpenter's alone, and how long those waited for the
//! same step that it took on last.
//!
//! A Karpenter that is short of CPU takes on hundreds of machines one after the other. Each of them is in line as long
//! as others move on and had waited as long; one that is passed over is not.

use super::Case;
use super::judging::Judging;
use super::stage::{Symptom, Thresholds, Wait};
use crate::api::{Evidence, Stage};
use crate::cluster_state::ClusterState;
use crate::cluster_state::memo::Memo;
use crate::objects::{Node, NodeClaim, NodePool, Taint};
use crate::upstream::karpenter::{NOT_READY_TAINT, UNREGISTERED_TAINT};
use chrono::{DateTime, TimeDelta, Utc};

/// The stage at which only Karpenter can take this machine on, and since when nothing else is missing.
pub fn turn(claim: &NodeClaim, node: &Node) -> Option<(Stage, DateTime<Utc>)> {
    let registered = claim.condition("Registered");
    if !claim.is_true("Registered") {
        let refused = registered.is_some_and(crate::objects::Condition::is_false);
        let waits = !refused && claim.is_true("Launched") && node.taint(UNREGISTERED_TAINT).is_some();
        return waits.then(|| appeared(claim, node)).flatten().map(|since| (Stage::Register, since));
    }
    let initialized = claim.condition("Initialized");
    // Whether the resources are there, Karpenter says as of its last look.
    let resource = initialized
        .is_some_and(|c| matches!(c.reason.as_str(), "ResourceNotRegistered" | "DRADriverPoolsNotPublished"));
    let meant = |taint: &Taint| claim.spec.taints.iter().any(|own| own.matches(taint));
    let tainted = node.spec.taints.iter().any(|t| !(meant(t) || claim.is_node() && t.key == NOT_READY_TAINT));
    let waits = !claim.is_true("Initialized") && node.is_ready() && !resource && !tainted;
    waits.then(|| usable(claim, node)).flatten().map(|since| (Stage::Initialize, since))
}

fn appeared(claim: &NodeClaim, node: &Node) -> Option<DateTime<Utc>> {
    node.metadata.creation_timestamp.max(claim.true_since("Launched"))
}

fn usable(claim: &NodeClaim, node: &Node) -> Option<DateTime<Utc>> {
    let ready = node.condition("Ready").filter(|c| c.is_true())?.last_transition_time?;
    Some(claim.true_since("Registered")?.max(ready))
}

/// How Karpenter took on the machines that passed a stage last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    /// The first node that passed within [`LATELY`] of the last one.
    first: DateTime<Utc>,
    last: DateTime<Utc>,
    /// The median wait of these nodes, so that one node with trouble of its own does not count.
    waited: TimeDelta,
}

/// Nodes that passed within this time of the last one count as one batch with it.
const LATELY: TimeDelta = TimeDelta::minutes(1);
/// So many machines of a NodePool that wait at once are a line.
const LINE: usize = 3;

impl Pace {
    /// One machine makes no pace.
    fn of(mut passed: Vec<(DateTime<Utc>, TimeDelta)>) -> Option<Self> {
        let last = passed.iter().map(|(at, _)| *at).max()?;
        passed.retain(|(at, _)| last - *at <= LATELY);
        let first = passed.iter().map(|(at, _)| *at).min()?;
        passed.sort_by_key(|(_, waited)| *waited);
        let (_, waited) = *passed.get((passed.len() - 1) / 2).filter(|_| passed.len() > 1)?;
        Some(Self { first, last, waited })
    }

    /// Until when a machine that waits since this time is in line, where no other one is taken on.
    fn holds_until(&self, since: DateTime<Utc>, t: &Thresholds) -> Option<DateTime<Utc>> {
        // In its order, a machine waits a little longer than those before it.
        let in_order = since.checked_add_signed(self.waited * 2)?;
        Some(in_order.min(self.last.checked_add_signed(t.register)?))
    }
}

#[derive(Debug)]
struct Line {
    register: Option<Pace>,
    initialize: Option<Pace>,
}

static LINE_OF_ALL: Memo<Line> = Memo::new("the line in front of Karpenter");

fn pace(cluster: &ClusterState, stage: Stage) -> Option<Pace> {
    let line = cluster.once(&LINE_OF_ALL, "", || {
        let (mut registered, mut initialized) = (Vec::new(), Vec::new());
        for claim in cluster.claims() {
            let nodes = cluster.nodes_of(claim);
            let Some(node) = nodes.first() else { continue };
            let waited = |since: Option<DateTime<Utc>>, at: DateTime<Utc>| Some((at, at - since.filter(|s| *s <= at)?));
            registered.extend(claim.true_since("Registered").and_then(|at| waited(appeared(claim, node), at)));
            initialized.extend(claim.true_since("Initialized").and_then(|at| waited(usable(claim, node), at)));
        }
        Line { register: Pace::of(registered), initialize: Pace::of(initialized) }
    });
    match stage {
        Stage::Register => line.register,
        Stage::Initialize => line.initialize,
        _ => None,
    }
}

/// Until when this machine only waits for its turn, or the NodePool for those before it; `None` where it does not.
pub fn in_line_until(case: &Case, t: &Thresholds) -> Option<DateTime<Utc>> {
    let pace = pace(case.cluster, case.stage())?;
    if case.wait.symptom == Symptom::KarpenterBehind {
        return pace.last.checked_add_signed(t.register);
    }
    let (stage, since) = turn(case.claim?, case.node?)?;
    pace.holds_until(since, t).filter(|until| stage == case.stage() && case.now < *until)
}

/// A NodePool with many machines in line.
pub(super) fn wait(judging: Judging, pool: &NodePool) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let mut waiting = Vec::new();
    for claim in cluster.claims_of_pool(pool.name()).filter(|c| !c.is_true("Initialized")) {
        waiting.extend(cluster.nodes_of(claim).first().and_then(|node| turn(claim, node)));
    }
    let of_stage = |stage: Stage| {
        let waiting: Vec<DateTime<Utc>> = waiting.iter().filter(|(at, _)| *at == stage).map(|(_, at)| *at).collect();
        if waiting.len() < LINE {
            return None;
        }
        let pace = pace(cluster, stage)?;
        let in_line = waiting.iter().filter(|since| pace.holds_until(**since, t).is_some_and(|until| now < until));
        let (count, since) = (in_line.clone().count(), *in_line.min()?);
        // What was held up elsewhere and comes all at once is taken on within seconds.
        (count >= LINE && pace.last - pace.first >= LATELY / 2).then_some((stage, since, count, pace))
    };
    let (stage, since, count, pace) = of_stage(Stage::Register).or_else(|| of_stage(Stage::Initialize))?;
    let (condition, missing) = match stage {
        Stage::Register => ("Registered", "the Nodes are there, and wait for Karpenter alone"),
        _ => ("Initialized", "the Nodes are Ready and free of taints, and wait for Karpenter alone"),
    };
    let evidence = Evidence::new(
        format!("NodePool/{}", pool.name()),
        format!(r#"NodeClaims: status.conditions[?(@.type=="{condition}")]"#),
        format!("not True on {LINE} NodeClaims or more, while others pass"),
        missing,
    )
    .figures(format!(
        "{count} NodeClaims; the last one passed at {}, those of that minute after {} and more",
        super::timestamp(pace.last),
        super::duration(pace.waited),
    ));
    let wait = Wait::new(stage, since, t.register * 2, t, evidence);
    Some(Wait { proven: wait.patience, symptom: Symptom::KarpenterBehind, ..wait })
}
