//! Pods that Karpenter puts off without a word, because all reservations that they may have a machine in are in use.
//!
//! Since core 1.15 a reservation without room stays an offering. Where a pod may have nothing else, Karpenter defers it
//! in each round. It then writes no Event, and a line of its log at debug level only.
//! Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go `offeringsToReserve`, scheduler.go
//! `Results.Record`, pkg/controllers/provisioning/provisioner.go `Schedule` (v1.15.0).

use super::judging::Judging;
use super::stage::Wait;
use super::unplaced::{admits, restricted_label};
use super::waiting_pods;
use crate::case::pool_wait;
use crate::cluster_state::ClusterState;
use crate::objects::input::Input;
use crate::objects::{NodeClass, NodePool, Pod};
use crate::upstream::karpenter::Karpenter;
use crate::upstream::unplaced::{is_refusal, nominated};

/// The pods that only this NodePool admits, and that Karpenter says nothing about.
pub(super) fn deferred_in<'w>(
    cluster: &'w ClusterState,
    pool: &'w NodePool,
    class: Option<&NodeClass>,
) -> impl Iterator<Item = &'w Pod> {
    let is_reserved = class.is_some_and(|class| pool.is_reserved_only() && pool.reservations(class).next().is_some());
    let defers = |k: &Karpenter| k.defers_for_reservations() && k.stopped.is_none();
    // Where no Event was read, silence tells nothing.
    let is_silence = is_reserved && cluster.karpenter().is_some_and(defers) && cluster.missing(Input::Events).is_none();
    let deferred = waiting_pods(cluster).filter(move |_| is_silence);
    deferred.filter(move |pod| is_deferred(cluster, pool, pod))
}

fn is_deferred(cluster: &ClusterState, pool: &NodePool, pod: &Pod) -> bool {
    // Pods of a DaemonSet are each for one Node.
    if pod.daemon_set().is_some() || restricted_label(pod).is_some() {
        return false;
    }
    let mut admitting = cluster.pools().filter(|other| admits(other, pod));
    let is_its_alone = admitting.next().is_some_and(|first| first.name() == pool.name()) && admitting.next().is_none();
    if !is_its_alone {
        return false;
    }
    let is_spoken_of = cluster.events_about_pod(pod).any(|event| is_refusal(event) || nominated(event).is_some());
    // One that came since may be for it.
    let came = pod.metadata.creation_timestamp;
    let is_served = cluster.claims_of_pool(pool.name()).any(|claim| claim.metadata.creation_timestamp >= came);
    !is_spoken_of && !is_served
}

pub(super) fn wait(judging: Judging, pool: &NodePool, class: Option<&NodeClass>) -> Option<Wait> {
    let oldest = deferred_in(judging.cluster, pool, class).min_by_key(|pod| pod.metadata.creation_timestamp)?;
    pool_wait::deferred_wait(oldest, judging.thresholds)
}
