//! A Node in service that keeps losing and regaining what pods need. The counts of its Events show it, not its state at
//! this moment.

use super::judging::Judging;
use super::stage::{Symptom, Wait};
use crate::api::{Evidence, Stage};
use crate::case::out_of_service::is_out_of_service;
use crate::objects::{Event, Node, Pod};
use crate::upstream::network_agents::serves_pods;
use chrono::{DateTime, TimeDelta, Utc};

/// An Event that repeats this often, over this long and this close together does not end by itself. A restart of the
/// kubelet, an upgrade of an agent or a bad start causes one or two. The kubelet pauses for at most five minutes before
/// it restarts a container (kubernetes v1.36.3 pkg/kubelet/kubelet.go `MaxCrashLoopBackOff`).
const TIMES: u32 = 4;
const SPAN: TimeDelta = TimeDelta::minutes(30);
const APART: TimeDelta = TimeDelta::minutes(12);

/// The time since which an Event repeats, if it still does.
fn again_since(event: &Event, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let (first, last) = (event.first_timestamp?, event.last_seen()?);
    let pauses = i32::try_from(event.times()).ok()?.checked_sub(1)?;
    let close = last - first <= APART.checked_mul(pauses)?;
    (event.times() >= TIMES && close && last - first >= SPAN && now - last <= APART).then_some(first)
}

/// A Node that flaps between Ready and NotReady, even if no single NotReady period lasts long enough to count.
pub(super) fn by_turns_wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let mut node_events = cluster.events("Node", node.name());
    // kubernetes v1.36.3 pkg/kubelet/events/event.go; the node lifecycle controller says the same of a silent kubelet.
    let (event, since) =
        node_events.find_map(|e| Some((e, (e.reason == "NodeNotReady").then(|| again_since(e, now))??)))?;
    if is_out_of_service(node) {
        return None;
    }
    let because = "the Node flaps between Ready and NotReady";
    let evidence = Evidence::new(format!("Event Node/{}", node.name()), "message", event.said(), because)
        .figures(format!("{} times", event.times()));
    let wait = Wait::new(Stage::Ready, since, t.ready, t, evidence);
    Some(Wait { symptom: Symptom::ByTurns, ..wait })
}

/// Whether the kubelet reports that it kills a container because the container's liveness probe failed.
/// Source: kubernetes v1.36.3 pkg/kubelet/kuberuntime/kuberuntime_manager.go `computePodActions`.
fn kills_for_probe(event: &Event) -> bool {
    event.reason == "Killing" && event.message.contains(" failed liveness probe")
}

/// The pod of a network agent that the kubelet kills again and again, the Event that says so, and the time since which
/// it does.
pub fn killed_agent<'e, P: Iterator<Item = &'e Pod>>(
    pods: impl Fn() -> P,
    pod_events: impl Iterator<Item = &'e Event>,
    now: DateTime<Utc>,
) -> Option<(&'e Pod, &'e Event, DateTime<Utc>)> {
    let killed = pod_events.filter(|e| kills_for_probe(e)).filter_map(|e| Some((e, again_since(e, now)?)));
    let of_agent = killed.filter_map(|(event, since)| {
        let is_agent = |pod: &&Pod| pod.daemon_set().is_some_and(serves_pods) && event.names(&pod.metadata);
        Some((pods().find(is_agent)?, event, since))
    });
    of_agent.min_by_key(|(pod, event, since)| (*since, &pod.metadata.name, &event.message))
}

/// A Ready Node on which the kubelet kills a network agent again and again. While the agent is down, no pod starts.
pub(super) fn killed_agent_wait(judging: Judging, node: &Node) -> Option<Wait> {
    let Judging { cluster, now, thresholds: t } = judging;
    let pods = || cluster.pods_on(node.name());
    let (pod, event, since) = killed_agent(pods, cluster.pod_events_on(node.name()), now)?;
    if !node.is_ready() || is_out_of_service(node) {
        return None;
    }
    let because = "the Node is Ready, and the kubelet kills what its pods need for their network again and again";
    let evidence = Evidence::new(format!("Event Pod/{}", pod.metadata.name), "message", event.said(), because)
        .figures(format!("{} times", event.times()));
    let wait = Wait::new(Stage::Ready, since, t.ready, t, evidence);
    Some(Wait { symptom: Symptom::AgentKilled, ..wait })
}
