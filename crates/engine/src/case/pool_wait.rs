//! The waits of NodePools and node classes: pods wait for a machine that is never launched.

use super::judging::Judging;
use super::thresholds::Thresholds;
use super::unplaced::Unplaced;
use super::wait::{Inert, Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::cluster_state::ClusterState;
use crate::objects::{Condition, Event, NodeClaim, NodeClass, NodePool, Pod};
use crate::upstream::karpenter;
use chrono::{DateTime, TimeDelta, Utc};

/// A NodePool that cannot launch: every recent claim vanished for lack of capacity, or the pool itself says why it is
/// not ready.
///
/// A pool whose class is not ready gets no diagnosis of its own: the class has it.
pub fn pool_wait<'a>(
    judging: Judging<'a>,
    pool: &NodePool,
    class: Option<&NodeClass>,
    history: &History<'a>,
    unplaced: impl Iterator<Item = Unplaced<'a>>,
) -> Option<Wait> {
    let Judging { now, thresholds: t, .. } = judging;
    let object = format!("NodePool/{}", pool.name());
    if let Some(condition) = pool.unready()
        && !pool.is_switched_off()
    {
        let since = condition.last_transition_time?;
        let field = format!(r#"status.conditions[?(@.type=="{}")]"#, condition.type_);
        let wait = Wait::new(
            Stage::Launch,
            since,
            t.launch,
            t,
            Evidence::new(object, field, condition.shown(), "Karpenter launches nothing for this NodePool"),
        );
        return Some(wait);
    }
    if let Some(wait) = class.and_then(|class| architecture_wait(pool, class, t)) {
        return Some(wait);
    }
    let claims = &history.claims;
    let died = died_at_start(&history.events, claims.iter().copied());
    if let Some(wait) = dying_wait(judging, &died, STILL_ASKED_FOR) {
        return Some(wait);
    }
    capacity_wait(judging, history).or_else(|| unplaced_wait(unplaced.filter(|u| u.waits(now)), claims, t))
}

/// While pods wait, Karpenter tries again as soon as a refused offering leaves its cache. If it is silent for much
/// longer, another NodePool has taken the pods, or they are gone.
/// Source: karpenter-provider-aws v1.14.1 pkg/cache/cache.go `UnavailableOfferingsTTL` (3 minutes).
pub const STILL_ASKED_FOR: TimeDelta = TimeDelta::minutes(10);

/// While one pod waits all the time, Karpenter still asks for it, however long the pool's offerings stay in the caches
/// of what is unavailable: half of the hour for which Events are kept.
const ASKED_FOR_BY_A_POD: TimeDelta = TimeDelta::minutes(30);

/// What is left of the NodeClaims of a NodePool.
#[derive(Debug)]
pub struct History<'a> {
    /// Those about claims that are gone, too.
    pub events: Vec<&'a Event>,
    pub claims: Vec<&'a NodeClaim>,
    /// Since when a pod waits that could have a machine of the NodePool.
    pub waited_for_since: Option<DateTime<Utc>>,
}

/// Whether Karpenter deleted the NodeClaim, for EC2 has nothing for it, or a quota, a full subnet or reservation is in
/// the way. Source: core v1.14.1 pkg/controllers/nodeclaim/lifecycle/launch.go `launchNodeClaim`.
pub fn is_refused_launch(event: &Event) -> bool {
    event.reason == "InsufficientCapacityError"
}

/// Whether Karpenter dropped every instance type before it asked EC2: then capacity need not be the reason.
/// Source: karpenter-provider-aws v1.14.1 pkg/providers/instance/instance.go `filterInstanceTypes`.
pub fn is_unasked(refusal: &Event) -> bool {
    refusal.message.contains("all requested instance types were unavailable during launch")
}

/// Since when launches for the NodePool are refused, while Karpenter may still ask for it. Then the pods that wait
/// decide whether the refusals are one series.
pub fn refused_since(cluster: &ClusterState, pool: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let refusals = || cluster.claim_events_of_pool(pool).filter(|event| is_refused_launch(event));
    let newest = refusals().filter_map(Event::last_seen).max()?;
    let is_old = now - newest > ASKED_FOR_BY_A_POD;
    if is_old || refusals().map(Event::times).sum::<u32>() < 2 {
        return None;
    }
    refusals().filter_map(Event::last_seen).min()
}

/// Whether the NodeClaim is new, and its launch has neither succeeded nor failed.
fn is_untried(judging: Judging, claim: &NodeClaim) -> bool {
    let is_new = claim.metadata.creation_timestamp.is_some_and(|at| judging.now - at < judging.thresholds.launch);
    let untouched = |c: &Condition| c.status == "Unknown" && matches!(c.reason.as_str(), "AwaitingReconciliation" | "");
    is_new && claim.condition("Launched").is_none_or(untouched)
}

/// A NodePool whose NodeClaims are refused, one after the other.
fn capacity_wait(judging: Judging, history: &History<'_>) -> Option<Wait> {
    let Judging { now, thresholds: t, .. } = judging;
    let refused = history.events.iter().copied().filter(|e| is_refused_launch(e));
    let mut refused: Vec<&Event> = refused.filter(|e| e.last_seen().is_some()).collect();
    refused.sort_by_key(|e| std::cmp::Reverse(e.last_seen()));
    // One series, without a silence and without a launch in it: the claim of that may be gone, too.
    let launches = history.events.iter().filter(|e| e.reason == "Launched");
    let launched = launches.filter_map(|e| e.last_seen()).max();
    let mut next = now;
    let follows = |e: &&Event| {
        let at = e.last_seen().unwrap_or(next);
        if launched.is_some_and(|launched| launched >= at) {
            return false;
        }
        let is_waited_for = history.waited_for_since.is_some_and(|since| since <= at);
        let at_most = if is_waited_for { ASKED_FOR_BY_A_POD } else { STILL_ASKED_FOR };
        std::mem::replace(&mut next, at) - at <= at_most
    };
    let refusals: Vec<&Event> = refused.into_iter().take_while(follows).collect();
    let first = refusals.iter().filter_map(|e| e.last_seen()).min()?;
    // A claim that came later is alive, and has its own diagnosis where it needs one: then the pool is not stuck. The
    // next claim of the series is no answer before Karpenter has tried to launch it.
    let answered = history.claims.iter().any(|c| {
        let is_later = c.metadata.creation_timestamp.is_some_and(|at| at >= first);
        is_later && !is_untried(judging, c) || refusals.iter().any(|e| e.involved_object.name == c.name())
    });
    if answered || refusals.iter().map(|e| e.times()).sum::<u32>() < 2 {
        return None;
    }
    let newest = refusals.iter().max_by_key(|e| e.last_seen())?;
    let evidence = Evidence::new(
        format!("Event {}/{}", newest.involved_object.kind, newest.involved_object.name),
        "message",
        newest.said(),
        "Karpenter deleted the NodeClaim at once; only its event is left",
    );
    let wait = Wait::new(Stage::Launch, first, t.launch, t, evidence);
    Some(if is_unasked(newest) { wait } else { wait.only_with_proof() })
}

/// A NodePool that pods wait for, and that Karpenter says it can launch nothing for.
fn unplaced_wait<'a>(
    unplaced: impl Iterator<Item = Unplaced<'a>>,
    claims: &[&NodeClaim],
    t: &Thresholds,
) -> Option<Wait> {
    let unplaced: Vec<Unplaced> = unplaced.collect();
    // Not the newest: that is another pod's every few minutes.
    let told = unplaced.first()?.event;
    // A machine that came since may be for them.
    let newest = unplaced.iter().filter_map(|u| u.event.last_seen()).max();
    if claims.iter().any(|c| c.metadata.creation_timestamp > newest) {
        return None;
    }
    let evidence = Evidence::new(
        format!("Event Pod/{}", told.involved_object.name),
        "message",
        told.said(),
        "the pod waits, and Karpenter launches nothing for it",
    );
    let since = unplaced.iter().filter_map(Unplaced::since).min()?;
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// A NodePool that a pod could have a machine of, while Karpenter does not run.
pub fn unserved_wait(stopped: &karpenter::Stopped, pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let since = stopped.since.max(pod.metadata.creation_timestamp)?;
    let because = "no Node has room for the pod, and only Karpenter makes another";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::NobodyLaunches, ..wait })
}

/// A NodePool that a pod could have a machine of, while every NodeClaim is refused.
pub fn refused_claims_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and no NodeClaim can be made for it";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    Some(Wait { symptom: Symptom::ClaimsRefused, ..wait })
}

/// A NodePool that a pod could have a machine of, did it not ask for a label that Karpenter leaves it alone for.
pub fn ignored_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and Karpenter makes none for it";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    Some(Wait { symptom: Symptom::PodsIgnored, ..wait })
}

/// A NodePool of reserved capacity that a pod could have a machine of, while Karpenter says nothing of the pod.
pub fn deferred_wait(pod: &Pod, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and Karpenter neither launches a node for it nor says why";
    let wait = pod_wait(pod, pod.metadata.creation_timestamp?, because, t)?;
    // What Karpenter has to say of a pod, it says every five minutes.
    let patience = t.launch * 5;
    Some(Wait { symptom: Symptom::PodsDeferred, patience, proven: patience, ..wait })
}

/// A NodePool whose machines come out too small for the pod that they are made for.
pub fn undersized_node_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    pod_wait(pod, since, "no Node has room for the pod, and each node that Karpenter launches for it is too small", t)
}

/// A NodePool whose machines are removed before the pod gets there that they are made for.
pub fn emptied_early_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has taken the pod, and each node that Karpenter launches for it is removed as empty";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::EmptiedEarly, ..wait })
}

/// A NodePool whose machines all have the port taken that the pod asks for.
pub fn port_held_wait(pod: &Pod, since: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has its port free, and on each node that Karpenter launches for it the port is taken";
    let wait = pod_wait(pod, since, because, t)?;
    Some(Wait { symptom: Symptom::PortHeld, ..wait })
}

/// A NodePool that a pod could have a machine of, and that is refused since this time.
pub fn refused_pool_wait(pod: &Pod, refused: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and of this NodePool there is no new one";
    pod_wait(pod, refused.max(pod.metadata.creation_timestamp?), because, t)
}

/// A NodePool that a pod could have a machine of, while Karpenter gets through no round since this time.
pub fn failing_round_wait(pod: &Pod, first: DateTime<Utc>, t: &Thresholds) -> Option<Wait> {
    let because = "no Node has room for the pod, and no NodeClaim has come since";
    let wait = pod_wait(pod, first.max(pod.metadata.creation_timestamp?), because, t)?;
    // Its rounds are seconds apart, and an API server that is slow for a while fails a few of them.
    Some(Wait { symptom: Symptom::RoundsFail, patience: t.launch * 2, proven: t.launch, ..wait })
}

/// A pod that waits for a machine, and that none is made for.
fn pod_wait(pod: &Pod, since: DateTime<Utc>, because: &'static str, t: &Thresholds) -> Option<Wait> {
    let said = pod.unscheduled()?;
    let namespace = pod.metadata.namespace.as_deref().unwrap_or("default");
    let object = format!("Pod/{namespace}/{}", pod.metadata.name);
    let evidence =
        Evidence::new(object, r#"status.conditions[?(@.type=="PodScheduled")]"#, "False Unschedulable", because)
            .figures(said);
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// A NodePool that is Karpenter's by kind, and that it leaves alone.
pub fn inert_wait(pool: &NodePool, why: Inert, t: &Thresholds) -> Option<Wait> {
    let object = format!("NodePool/{}", pool.name());
    let evidence = match why {
        Inert::StaticCapacityOff => {
            let replicas = pool.spec.replicas.unwrap_or_default().to_string();
            Evidence::new(object, "spec.replicas", replicas, "and there is no NodeClaim of it")
        }
        Inert::ClassNotServed | Inert::AutoModeOff => {
            Evidence::new(object, "status.conditions", "none", "nobody has looked at it since it was made")
        }
    };
    let wait = Wait::new(Stage::Launch, pool.metadata.creation_timestamp?, t.launch, t, evidence);
    Some(Wait { symptom: Symptom::Inert(why), ..wait.only_with_proof() })
}

/// A NodePool for an architecture that no image of its node class runs on.
fn architecture_wait(pool: &NodePool, class: &NodeClass, t: &Thresholds) -> Option<Wait> {
    let (wanted, have) = (pool.architectures(), class.architectures()?);
    if wanted.is_empty() || wanted.iter().any(|arch| have.contains(arch.as_str())) {
        return None;
    }
    let resolved = ["AMIsReady", "Ready"].into_iter().filter_map(|type_| class.condition(type_)?.last_transition_time);
    let since = resolved.chain(pool.metadata.creation_timestamp).max()?;
    let because = "Karpenter leaves out every instance type that no image of the class runs on, and none is left";
    let evidence = Evidence::new(
        format!("NodePool/{}", pool.name()),
        "spec.template.spec.requirements",
        wanted.join(", "),
        because,
    );
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof())
}

/// The NodeClaims whose instance EC2 ended within this time of its launch, without anybody having asked for that, since
/// a machine of the NodePool last joined.
///
/// Karpenter writes `TerminatingOnInterruption` only for a NodeClaim that is not being deleted already, and nothing
/// else ends one that is not registered before its timeout: neither consolidation nor garbage collection.
/// Sources: karpenter-provider-aws v1.14.1 pkg/controllers/interruption/utils.go `deleteNodeClaim`; core
/// pkg/controllers/nodeclaim/garbagecollection/controller.go (v1.14.3).
pub fn died_at_start<'a>(claim_events: &[&'a Event], claims: impl Iterator<Item = &'a NodeClaim>) -> Vec<&'a Event> {
    const AT_START: TimeDelta = TimeDelta::minutes(3);
    // The events of one claim stand together: they are filed by its name.
    let died = |events: &[&'a Event]| {
        let find = |reason: &str| events.iter().copied().find(|e| e.reason == reason);
        if find("SpotInterrupted").or(find("Registered")).is_some() {
            return None;
        }
        let (launched, ended) = (find("Launched")?.last_seen()?, find("TerminatingOnInterruption")?);
        find("InstanceTerminating")?;
        (ended.last_seen()? - launched <= AT_START).then_some(ended)
    };
    let told = claim_events.iter().filter(|e| e.reason == "Registered").filter_map(|e| e.last_seen());
    let joined = told.chain(claims.filter_map(|c| c.true_since("Registered"))).max();
    claim_events
        .chunk_by(|a, b| a.involved_object.name == b.involved_object.name)
        .filter_map(died)
        .filter(|ended| joined.is_none_or(|joined| ended.last_seen() > Some(joined)))
        .collect()
}

/// Instance after instance ends before it can join: one wait, from the first of them on, however soon the next one
/// follows.
fn dying_wait(judging: Judging, died: &[&Event], still: TimeDelta) -> Option<Wait> {
    let Judging { now, thresholds: t, .. } = judging;
    let newest = died.iter().max_by_key(|e| e.last_seen()).filter(|_| died.len() >= 2)?;
    newest.last_seen().filter(|last| now - *last <= still)?;
    let first = died.iter().filter_map(|e| e.last_seen()).min()?;
    let evidence = Evidence::new(
        format!("Event NodeClaim/{}", newest.involved_object.name),
        "message",
        newest.said(),
        "EC2 ended the instance; nobody had deleted the NodeClaim",
    );
    Some(Wait::new(Stage::Launch, first, t.launch, t, evidence))
}

/// A node class that is not Ready.
pub fn class_wait(class: &NodeClass, t: &Thresholds) -> Option<Wait> {
    if class.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let ready = class.condition("Ready").filter(|c| !c.is_true())?;
    let since = ready.last_transition_time.or(class.metadata.creation_timestamp)?;
    let object = format!("{}/{}", class.kind, class.name());
    let evidence = Evidence::new(
        object,
        r#"status.conditions[?(@.type=="Ready")]"#,
        ready.shown(),
        "Karpenter launches nothing from a node class that is not Ready",
    );
    Some(Wait::new(Stage::Launch, since, t.launch, t, evidence))
}

/// A node class whose instance profile Karpenter has not made since this time.
pub fn profileless_wait(class: &NodeClass, since: DateTime<Utc>, t: &Thresholds) -> Wait {
    let object = format!("{}/{}", class.kind, class.name());
    let because = "Karpenter launches nothing from a node class without an instance profile";
    let evidence = Evidence::new(object, "status.instanceProfile", "none", because);
    Wait::new(Stage::Launch, since, t.launch, t, evidence).only_with_proof()
}
