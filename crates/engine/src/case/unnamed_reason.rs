//! Which NodePool a reason of Karpenter is about, if Karpenter does not name it.

use super::unplaced::{
    ZONE, admits, allows_all, asks_for, listed_zones, lists_zones, selects, selects_by, tolerated, values,
};
use crate::cluster_state::ClusterState;
use crate::objects::{Event, NodePool, Pod};
use crate::upstream::startup_taint;
use crate::upstream::unplaced::{
    PlacementObstacle, UnnamedReason, left_to_requirement, left_to_spread, refusals, unknown_label, unnamed,
};

/// The reason in an event that is about this NodePool although Karpenter does not name it.
pub fn about<'w>(cluster: &ClusterState, event: &'w Event, pod: &Pod, pool: &NodePool) -> Option<UnnamedReason<'w>> {
    unnamed(event).find(|reason| match reason.obstacle {
        PlacementObstacle::Label => {
            let label = unknown_label(event).map(|(_, label)| label);
            label.is_some_and(|label| is_meant_without(cluster, pod, label, pool))
        }
        _ => is_about(cluster, event, pod, pool, reason),
    })
}

/// Whether the NodePool is the one that a pod would have a machine of, if it did not ask for this label: the one that
/// it names, else the first. No NodePool has the label, so any of them may show what is wrong with the pod.
pub fn is_meant_without(cluster: &ClusterState, pod: &Pod, label: &str, pool: &NodePool) -> bool {
    let meant = |pool: &&NodePool| tolerated(pool, pod, |_| true) && selects_by(pool, pod, |key| key != label);
    let named = |pool: &&NodePool| values(pod).any(|value| value == pool.name());
    let found = cluster.pools().filter(meant).find(named).or_else(|| cluster.pools().find(meant));
    found.is_some_and(|found| found.name() == pool.name())
}

/// Whether the pod could have a machine of the NodePool if not for this reason. Karpenter has one reason for each
/// NodePool. If more NodePools fit than Karpenter gives such reasons, nodewhy cannot tell which of them it means.
fn is_about(cluster: &ClusterState, event: &Event, pod: &Pod, pool: &NodePool, reason: &UnnamedReason) -> bool {
    let is_named = |pool: &NodePool| refusals(event).any(|(named, _)| named == pool.name());
    let is_meant = |pool: &NodePool| fits(pool, pod, reason) && !is_named(pool);
    let given = || unnamed(event).filter(|other| other.part == reason.part).count();
    is_meant(pool) && cluster.pools().filter(|pool| is_meant(pool)).count() <= given()
}

fn fits(pool: &NodePool, pod: &Pod, reason: &UnnamedReason) -> bool {
    // Karpenter has no reason for a NodePool that it does not schedule for.
    // Source: core pkg/controllers/provisioning/provisioner.go `NewScheduler` (v1.14.1, v1.15.0).
    if pool.spec.replicas.is_some() || pool.unready().is_some() {
        return false;
    }
    match reason.obstacle {
        PlacementObstacle::StartupTaint => has_taint(pool, pod, reason.part),
        PlacementObstacle::Zone => admits(pool, pod) && has_zones(pool, pod, reason.part),
        _ => false,
    }
}

/// Whether the startup taint in this reason is the only thing that keeps the pod off the NodePool.
fn has_taint(pool: &NodePool, pod: &Pod, part: &str) -> bool {
    let Some(taint) = startup_taint::among_taints(pool) else { return false };
    // Source: core pkg/utils/pretty/pretty.go `Taint` (v1.14.1, v1.15.0).
    part.contains(&taint.to_string())
        && !pod.spec.tolerations.iter().any(|own| own.tolerates(taint))
        && tolerated(pool, pod, |taint| startup_taint::owner(taint).is_none())
        && selects(pool, pod)
}

/// Whether the zones in this reason are what the NodePool leaves to the pod.
fn has_zones(pool: &NodePool, pod: &Pod, part: &str) -> bool {
    let asks_itself = asks_for(pod).any(|key| key == ZONE);
    let is_narrowed = || asks_itself || !pod.spec.volumes.is_empty();
    if let Some(left) = left_to_requirement(part) {
        return lists_zones(pool, &left) || asks_itself && allows_all(pool, &left);
    }
    match left_to_spread(part) {
        Some(left) => lists_zones(pool, &left) || is_narrowed() && allows_all(pool, &left),
        None => listed_zones(pool).is_none() || is_narrowed(),
    }
}
