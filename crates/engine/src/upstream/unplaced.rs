//! Why Karpenter makes no machine for a pod: its `FailedScheduling` events name each NodePool, and what speaks against
//! it.

use crate::objects::Event;
use chrono::{DateTime, TimeDelta, Utc};

/// What speaks against a NodePool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementObstacle {
    /// Any machine would exceed its limits. It is asked before whether the pod may go there at all.
    Limits,
    /// The pod may go there, and no instance type is left.
    NoInstanceType,
    /// Nothing is said of it: a NodePool whose own requirements leave no instance type is passed over, whatever the pod.
    /// Source: core pkg/controllers/provisioning/scheduling/scheduler.go `NewScheduler` (v1.14.1).
    PassedOver,
}

/// What Karpenter says of a pod that it makes no machine for.
fn said(event: &Event) -> Option<&str> {
    event.message.strip_prefix("Failed to schedule pod, ").filter(|_| event.reason == "FailedScheduling")
}

/// Whether it may still hold: Karpenter repeats the event every five minutes.
/// Source: core pkg/controllers/provisioning/scheduling/events.go `PodFailedToScheduleEvent` (v1.14.1).
pub fn is_repeated(event: &Event, now: DateTime<Utc>) -> bool {
    const REPEATED: TimeDelta = TimeDelta::minutes(10);
    event.last_seen().is_some_and(|at| now - at <= REPEATED)
}

/// Whether it is Karpenter's word that it makes no machine for the pod.
pub fn is_refusal(event: &Event) -> bool {
    said(event).is_some()
}

/// The NodePools that an event of Karpenter's refuses, each with the reason. A pod that the NodePool is not for is
/// refused for its labels or taints, which is left out here.
/// Sources: core pkg/controllers/provisioning/scheduling/{events,scheduler,nodeclaim}.go (v1.0.5, v1.4.0, v1.14.1).
pub fn refusals(event: &Event) -> impl Iterator<Item = (&str, PlacementObstacle)> {
    said(event).into_iter().flat_map(|message| message.split("; ")).filter_map(|part| {
        let limits = part.contains("exceed limits for nodepool") || part.contains("node limits have been exhausted");
        let refusal = match limits {
            true => PlacementObstacle::Limits,
            false if part.contains("no instance type") => PlacementObstacle::NoInstanceType,
            false => return None,
        };
        Some((pool(part)?, refusal))
    })
}

/// The NodePool that a part of the message is about: each version has its own way to name it.
fn pool(part: &str) -> Option<&str> {
    let ways = [("karpenter.sh/nodepool In [", ']'), ("nodepool: \"", '"'), ("nodepool \"", '"'), ("NodePool=", ')')];
    ways.into_iter().find_map(|(before, after)| {
        let (_, rest) = part.split_once(before)?;
        rest.split([after, ',', ' ']).next().filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::{PlacementObstacle, refusals};
    use crate::objects::Event;

    fn of(message: &str) -> Vec<(String, PlacementObstacle)> {
        let event = Event { reason: "FailedScheduling".into(), message: message.into(), ..Event::default() };
        refusals(&event).map(|(pool, refusal)| (pool.to_owned(), refusal)).collect()
    }

    /// As core 1.0.5, 1.4.0 and 1.14.1 write them.
    #[test]
    fn each_version_names_its_nodepools() {
        let limits = vec![("batch".to_owned(), PlacementObstacle::Limits)];
        let types = vec![("batch".to_owned(), PlacementObstacle::NoInstanceType)];
        for (message, named) in [
            (r#"Failed to schedule pod, all available instance types exceed limits for nodepool: "batch""#, &limits),
            (r#"Failed to schedule pod, all available instance types exceed limits for nodepool "batch""#, &limits),
            (
                "Failed to schedule pod, all available instance types exceed limits for nodepool (NodePool=batch)",
                &limits,
            ),
            ("Failed to schedule pod, node limits have been exhausted for nodepool (NodePool=batch)", &limits),
            (
                r#"Failed to schedule pod, incompatible with nodepool "other", daemonset overhead={"pods":"3"}, label "team" does not have known values; incompatible with nodepool "batch", daemonset overhead={"pods":"3"}, no instance type satisfied resources {"pods":"4"} and requirements karpenter.sh/nodepool In [batch] (no instance type has the required offering)"#,
                &types,
            ),
            (
                "Failed to schedule pod, no instance type met all requirements, requirements=karpenter.sh/nodepool In [batch], kubernetes.io/os In [linux], resources={}",
                &types,
            ),
            (r#"Failed to schedule pod, incompatible with nodepool "batch", did not tolerate taint"#, &vec![]),
            (r#"all available instance types exceed limits for nodepool: "batch""#, &vec![]),
        ] {
            assert_eq!(of(message), *named, "{message}");
        }
    }
}
