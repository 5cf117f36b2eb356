//! Removes a cloud-provider taint, if you opted in. This module decides without IO and without a clock. `publish`
//! carries it out.
//!
//! The condition `Remediated` of the NodeDiagnosis records every removal and refusal. So a restart forgets nothing: how
//! long a verdict has existed, how much of the budget is spent, and which taint came back. The Node also records a
//! removal (`stamp`), because a NodeDiagnosis may be deleted.

pub mod breaker;
mod doubts;
pub mod guard;
mod opt_in;
mod patch;
mod stamp;
#[cfg(test)]
mod tests;
mod witness;

pub use doubts::Doubts;
pub use opt_in::OptIn;
pub use patch::Removal;
pub use witness::Witness;

use crate::api::{Condition, NodeDiagnosis};
use crate::cluster_state::ClusterState;
use crate::objects::{Node, Taint};
use crate::upstream::karpenter::UNINITIALIZED_TAINT;
use breaker::RemovalTally;
use chrono::{DateTime, TimeDelta, Utc};
use guard::{Refusal, Scene};
use std::collections::BTreeMap;

/// The type of the condition.
pub const CONDITION: &str = "Remediated";
/// Its reason if a removal was decided and its outcome is not known yet. nodewhy writes it before it sends the patch.
/// If the replica dies in between, the next one knows.
pub const REMOVING: &str = "Removing";
/// Its reason if the taint was removed. Only this reason has the status True.
pub const REMOVED: &str = "Removed";
/// Its reason if a removed taint is on the Node again.
pub const PUT_BACK: &str = "PutBack";
/// Delay before a request is retried that the API server did not answer or did not permit.
const AGAIN_AFTER: TimeDelta = TimeDelta::minutes(1);

/// After this long the watch has certainly shown the result of a removal.
const FORGET: TimeDelta = TimeDelta::hours(1);

/// Whether taints are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing is removed or reported.
    #[default]
    Off,
    /// Checks all guards and sends the patch with dryRun=All. The API server stores nothing.
    DryRun,
    On,
}

/// What remediation may do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Whether to remove the taint from Nodes that the cloud controller has initialized.
    pub stale: Mode,
    /// Whether to remove it from Nodes that the cloud controller has never initialized, if Karpenter has registered
    /// them.
    pub uninitialized: Mode,
    /// How long a verdict must exist before nodewhy acts on it, in seconds.
    pub wait: u32,
    /// The same wait for a Node that the cloud controller has never initialized, in seconds. It may still do so.
    pub wait_uninitialized: u32,
    /// The time for which removals are counted, in seconds.
    pub window: u32,
    /// Maximum number of removals in that time.
    pub budget: u16,
    /// Maximum removals in that time, as a percentage of all Nodes. At least one is allowed.
    pub share: u8,
    /// Nothing is removed while more Nodes than this carry the taint.
    pub many: u16,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            stale: Mode::Off,
            uninitialized: Mode::Off,
            wait: 600,
            wait_uninitialized: 1800,
            window: 3600,
            budget: 5,
            share: 5,
            many: 5,
        }
    }
}

impl Limits {
    fn is_off(&self) -> bool {
        [self.stale, self.uninitialized] == [Mode::Off; 2]
    }

    const fn mode(&self, opt_in: OptIn) -> Mode {
        match opt_in {
            OptIn::Stale => self.stale,
            OptIn::Uninitialized => self.uninitialized,
        }
    }

    fn wait(&self, opt_in: OptIn) -> TimeDelta {
        let seconds = match opt_in {
            OptIn::Stale => self.wait,
            OptIn::Uninitialized => self.wait_uninitialized,
        };
        TimeDelta::seconds(i64::from(seconds))
    }

    /// The opt-in and mode for the cause of a diagnosis. `None` if you did not opt in.
    fn asked(&self, diagnosis: &NodeDiagnosis) -> Option<(OptIn, Mode)> {
        let opt_in = OptIn::of(&diagnosis.status.as_ref()?.cause)?;
        Some((opt_in, self.mode(opt_in))).filter(|(_, mode)| *mode != Mode::Off)
    }

    fn window(&self) -> TimeDelta {
        TimeDelta::seconds(i64::from(self.window))
    }

    fn many(&self) -> usize {
        usize::from(self.many)
    }

    /// The budget of removals per window for a cluster of this many Nodes.
    fn budget(&self, nodes: usize) -> usize {
        let share = nodes.saturating_mul(usize::from(self.share)) / 100;
        share.max(1).min(usize::from(self.budget))
    }
}

/// Work for the rest of the operator.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Remove(Removal),
    Say(Remark),
}

/// The result of a removal, or the reason why nothing was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The name of the NodeDiagnosis.
    pub diagnosis: String,
    pub result: RemovalOutcome,
    pub reason: &'static str,
    pub message: String,
}

/// The result, for the metric and the condition's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RemovalOutcome {
    /// All guards agree. This result is written before the taint is removed.
    Announced,
    Removed,
    DryRun,
    /// A guard said no.
    Refused,
    /// The Node changed before its taint was removed. Nothing was done. nodewhy judges it again.
    Conflict,
    /// The API server said no.
    Rejected,
    /// The API server did not answer, so the result is unknown.
    Unanswered,
    /// A removed taint is on the Node again.
    PutBack,
}

impl RemovalOutcome {
    /// Its value in metrics.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Announced => "announced",
            Self::Removed => "removed",
            Self::DryRun => "dry_run",
            Self::Refused => "refused",
            Self::Conflict => "conflict",
            Self::Rejected => "rejected",
            Self::Unanswered => "unanswered",
            Self::PutBack => "put_back",
        }
    }

    /// The status of the condition.
    pub const fn status(self) -> &'static str {
        match self {
            Self::Removed => "True",
            Self::Unanswered => "Unknown",
            Self::Announced | Self::DryRun | Self::Refused | Self::Conflict | Self::Rejected | Self::PutBack => "False",
        }
    }
}

/// The answer of the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchAnswer {
    /// The taint is removed. Contains the new resourceVersion of the Node.
    Done(String),
    /// The Node has changed since it was judged.
    Conflict,
    NotPermitted(String),
    /// Rejected by validation, an admission policy or a webhook, or the Node is gone.
    Rejected(String),
    Unanswered(String),
    /// Not sent, because an object that the decision rests on has changed, or could not be read just before.
    NotCurrent(String),
    /// Not sent, because another replica leads.
    Void,
}

/// The state of an ordered removal.
#[derive(Debug)]
struct Try {
    at: DateTime<Utc>,
    state: TryState,
}

#[derive(Debug)]
enum TryState {
    UnderWay,
    /// The resourceVersion of the Node after the removal. An older version does not show who re-added the taint.
    Removed(String),
    /// Nothing was done to this resourceVersion, and nodewhy will not try it again.
    Stale(String),
    Again(DateTime<Utc>),
}

/// Removals in progress, in addition to what the diagnoses record.
#[derive(Debug)]
pub struct Remediation {
    limits: Limits,
    /// The tries, by name of the diagnosis.
    tries: BTreeMap<String, Try>,
}

impl Remediation {
    pub const fn new(limits: Limits) -> Self {
        Self { limits, tries: BTreeMap::new() }
    }

    /// Looks at every diagnosis and returns the next steps. Only the leading replica calls it, because followers must
    /// not act. `is_written` says whether the cluster shows the diagnosis of that name as it is here.
    pub fn look<'d>(
        &mut self,
        cluster: &ClusterState,
        diagnoses: &(impl Iterator<Item = &'d NodeDiagnosis> + Clone),
        is_written: impl Fn(&str) -> bool,
        doubts: &Doubts,
        now: DateTime<Utc>,
    ) -> Vec<Step> {
        if self.limits.is_off() {
            return Vec::new();
        }
        self.tries.retain(|_, tried| matches!(tried.state, TryState::UnderWay) || now - tried.at < FORGET);
        let mut steps = Vec::new();
        let mut tally = None;
        for diagnosis in diagnoses.clone() {
            let Some(name) = diagnosis.metadata.name.as_deref() else { continue };
            let Some(node) = node_of(cluster, diagnosis) else { continue };
            let said = remediated(diagnosis).map(|c| &*c.reason);
            let is_due = self.is_due(name, node, now);
            if said == Some(REMOVING) && is_due && node.taint(UNINITIALIZED_TAINT).is_none() {
                steps.push(Step::Say(gone(name, node)));
                continue;
            }
            if said == Some(REMOVED) || (said != Some(PUT_BACK) && stamp::is_stamped(node)) {
                steps.extend(self.came_back(name, node));
                continue;
            }
            let Some((opt_in, mode)) = self.limits.asked(diagnosis).filter(|_| is_open(diagnosis)) else { continue };
            // The taint is gone already, and the verdict is about to end.
            if !is_due || node.taint(UNINITIALIZED_TAINT).is_none() {
                continue;
            }
            let tally = tally.get_or_insert_with(|| {
                let under_way = self.tries.iter().filter(|(_, tried)| matches!(tried.state, TryState::UnderWay));
                RemovalTally::of(
                    cluster,
                    diagnoses.clone(),
                    under_way.map(|(name, _)| name.as_str()),
                    now,
                    &self.limits,
                )
            });
            let claim = cluster.claim_of_node(node);
            let pool = node.metadata.label("karpenter.sh/nodepool").and_then(|pool| cluster.pool(pool));
            let dry_run = mode == Mode::DryRun;
            let scene = Scene { now, limits: &self.limits, opt_in, diagnosis, node, claim, pool, tally, doubts };
            match guard::admit(&scene) {
                Err(refusal) => steps.push(Step::Say(refused(name, node, &refusal))),
                // It is already reported.
                Ok(()) if dry_run && said == Some(DRY_RUN) => {}
                Ok(()) if !dry_run && said != Some(REMOVING) => {
                    tally.removals += 1;
                    steps.push(Step::Say(announced(name, node)));
                }
                Ok(()) if !is_written(name) => {}
                Ok(()) => {
                    if let Some(removal) = Removal::from(node, name, dry_run, now) {
                        let removal = removal.resting_on(claim, pool);
                        self.tries.insert(name.to_owned(), Try { at: now, state: TryState::UnderWay });
                        steps.push(Step::Remove(removal));
                    }
                }
            }
        }
        steps
    }

    /// The number of Nodes that keep the taint although you opted in to its removal, by the last reason. A taint that
    /// came back counts for as long as it stops all removals, even if Karpenter considers the Node usable.
    pub fn kept<'d>(
        &self,
        diagnoses: impl Iterator<Item = &'d NodeDiagnosis>,
        now: DateTime<Utc>,
    ) -> BTreeMap<String, i64> {
        let mut kept = BTreeMap::new();
        if self.limits.is_off() {
            return kept;
        }
        for diagnosis in diagnoses {
            let Some(said) = remediated(diagnosis) else { continue };
            let waits = said.reason != REMOVED && is_open(diagnosis) && self.limits.asked(diagnosis).is_some();
            if waits || breaker::holds(said, now) {
                *kept.entry(said.reason.to_string()).or_insert(0) += 1;
            }
        }
        kept
    }

    /// Records the answer to a removal.
    pub fn done(&mut self, removal: &Removal, answer: PatchAnswer, now: DateTime<Utc>) -> Option<Remark> {
        let Removal { node, taint, before, after, .. } = removal;
        let change = format!("{taint} from Node {node}; its taints before: {before}; after: {after}");
        let (state, result, reason, message) = match answer {
            PatchAnswer::Done(_) if removal.dry_run => (
                TryState::Stale(removal.version.clone()),
                RemovalOutcome::DryRun,
                DRY_RUN,
                format!("Would remove {change}. The API server accepts it. Nothing was changed."),
            ),
            PatchAnswer::Done(version) => {
                (TryState::Removed(version), RemovalOutcome::Removed, REMOVED, format!("Removed {change}."))
            }
            PatchAnswer::Conflict => (
                TryState::Stale(removal.version.clone()),
                RemovalOutcome::Conflict,
                "Conflict",
                format!(
                    "Node {node} changed just before nodewhy would have removed {taint}. nodewhy changed nothing and \
                     decides again."
                ),
            ),
            PatchAnswer::NotPermitted(why) => (
                TryState::Again(now + AGAIN_AFTER),
                RemovalOutcome::Rejected,
                "NotPermitted",
                format!(
                    "Would remove {change}. nodewhy is not allowed to change Nodes: {why}. \
                     manifests/components/remediation permits it."
                ),
            ),
            PatchAnswer::Rejected(why) => (
                TryState::Again(now + AGAIN_AFTER),
                RemovalOutcome::Rejected,
                "RejectedByServer",
                format!("Would remove {change}. The API server rejects it: {why}."),
            ),
            PatchAnswer::Unanswered(why) => (
                TryState::Again(now + AGAIN_AFTER),
                RemovalOutcome::Unanswered,
                "NoAnswer",
                format!("nodewhy tried to remove {change}. It does not know whether the API server did so: {why}."),
            ),
            PatchAnswer::NotCurrent(why) => (
                TryState::Again(now + AGAIN_AFTER),
                RemovalOutcome::Refused,
                guard::NOT_CURRENT,
                format!(
                    "{taint} stays on Node {node}. The facts of the decision are not current: {why}. nodewhy decides \
                     again."
                ),
            ),
            PatchAnswer::Void => {
                self.tries.remove(&removal.diagnosis);
                return None;
            }
        };
        if let Some(tried) = self.tries.get_mut(&removal.diagnosis) {
            tried.state = state;
        }
        Some(Remark { diagnosis: removal.diagnosis.clone(), result, reason, message })
    }

    fn is_due(&self, name: &str, node: &Node, now: DateTime<Utc>) -> bool {
        match self.tries.get(name).map(|tried| &tried.state) {
            Some(TryState::UnderWay) => false,
            Some(TryState::Stale(version)) => node.metadata.resource_version.as_deref() != Some(version.as_str()),
            Some(TryState::Again(at)) => now >= *at,
            Some(TryState::Removed(_)) | None => true,
        }
    }

    /// Reports a removed taint that is on the Node again, and who wrote the taint list since.
    fn came_back(&self, name: &str, node: &Node) -> Option<Step> {
        let taint = node.taint(UNINITIALIZED_TAINT)?;
        // The watch may still show the Node before the removal. The removal itself writes the stamp.
        if !stamp::is_stamped(node)
            && let Some(Try { state: TryState::Removed(version), .. }) = self.tries.get(name)
            && !is_newer(node.metadata.resource_version.as_deref()?, version)
        {
            return None;
        }
        Some(Step::Say(Remark {
            diagnosis: name.to_owned(),
            result: RemovalOutcome::PutBack,
            reason: PUT_BACK,
            message: stamp::put_back(node, taint).0,
        }))
    }
}

/// The reason of the condition in a dry run.
const DRY_RUN: &str = "DryRun";

fn refused(name: &str, node: &Node, refusal: &Refusal) -> Remark {
    Remark {
        diagnosis: name.to_owned(),
        result: RemovalOutcome::Refused,
        reason: refusal.reason,
        message: format!(
            "{UNINITIALIZED_TAINT} stays on Node {}: {}.",
            node.name(),
            refusal.because.trim_end_matches('.')
        ),
    }
}

/// The message names the judged version. Otherwise it would be the same after a conflict. The API server would then
/// store nothing, its watch would show nothing, and the removal would wait forever.
fn announced(name: &str, node: &Node) -> Remark {
    let version = node.metadata.resource_version.as_deref().unwrap_or_default();
    Remark {
        diagnosis: name.to_owned(),
        result: RemovalOutcome::Announced,
        reason: REMOVING,
        message: format!(
            "{UNINITIALIZED_TAINT} is about to be removed from Node {} (resourceVersion {version}).",
            node.name()
        ),
    }
}

/// Reports a removal that another replica announced. That replica is gone or never received the answer.
fn gone(name: &str, node: &Node) -> Remark {
    Remark {
        diagnosis: name.to_owned(),
        result: RemovalOutcome::Removed,
        reason: REMOVED,
        message: format!(
            "{UNINITIALIZED_TAINT} was about to be removed from Node {} when another replica took over, and it is \
             gone: it counts as removed.",
            node.name()
        ),
    }
}

/// The Node of a diagnosis, if it is still the same Node.
fn node_of<'w>(cluster: &'w ClusterState, diagnosis: &NodeDiagnosis) -> Option<&'w Node> {
    let named = diagnosis.spec.node.as_ref()?;
    cluster.node(&named.name).filter(|node| *node.metadata.uid == *named.uid)
}

fn is_open(diagnosis: &NodeDiagnosis) -> bool {
    diagnosis.status.as_ref().is_some_and(|status| status.outcome.is_none())
}

/// The last condition about remediation in a diagnosis.
pub fn remediated(diagnosis: &NodeDiagnosis) -> Option<&Condition> {
    diagnosis.status.as_ref()?.conditions.iter().find(|c| c.type_ == CONDITION)
}

/// Whether the budget or the breaker may still depend on this diagnosis.
pub fn needs(diagnosis: &NodeDiagnosis, now: DateTime<Utc>) -> bool {
    let acted = |c: &&Condition| c.status != "False" || [REMOVING, PUT_BACK].contains(&&*c.reason);
    remediated(diagnosis).filter(acted).is_some_and(|c| now - c.last_transition_time < breaker::HOLD)
}

/// The taint as the kubelet sets it, and its place in the list, where it is there once.
/// Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `initialNode` (value true, effect NoSchedule).
fn exact_taint(node: &Node) -> Option<(usize, &Taint)> {
    let mut found = node.spec.taints.iter().enumerate().filter(|(_, t)| t.key == UNINITIALIZED_TAINT);
    let only = found.next().filter(|(_, t)| t.value == "true" && t.effect == "NoSchedule")?;
    found.next().is_none().then_some(only)
}

/// Whether a resourceVersion is newer: they are numbers without bound.
/// Source: kubernetes v1.36.3 k8s.io/apimachinery pkg/util/resourceversion `CompareResourceVersion`.
fn is_newer(version: &str, than: &str) -> bool {
    (version.len(), version) > (than.len(), than)
}
