//! A PodDisruptionBudget permits no eviction.

use super::{drain_taint, head, is_bounded, is_name, lasts, limit};
use crate::explain::shut_budget::{blame_budget, bound, budgets, have_it_allow, shut_over, why_shut};
use crate::objects::{Condition, Event, Node, Pod, PodDisruptionBudget, Taint};
use crate::rules::prelude::*;
use crate::upstream::karpenter::DO_NOT_DISRUPT;

const TWO_BUDGETS: &str = "eviction does not support multiple PDBs";

/// A pod whose eviction a PodDisruptionBudget has refused for as long as any step may take. A terminationGracePeriod
/// ends the wait by itself, so its owner allows that long.
pub(super) fn disruption_budget(case: &Case, node: &Node) -> Option<Finding> {
    if is_bounded(case) {
        return None;
    }
    let lasts = |e: &&Event| lasts(case, e, case.wait.proven * 2);
    let mut refused = case.events().filter(|e| e.reason == "FailedDraining").filter(lasts);
    let (event, (namespace, name)) = refused.find_map(|e| Some((e, refused_pod(&e.message)?)))?;
    let pod = case.pods().find(|p| p.metadata.name == *name && p.metadata.namespace.as_deref() == Some(namespace));
    // It has gone meanwhile, or is on its way.
    if case.cluster.missing(Input::Pods).is_none() && pod.is_none_or(|p| p.metadata.deletion_timestamp.is_some()) {
        return None;
    }
    let why = if event.message.contains(TWO_BUDGETS) {
        "more than one PodDisruptionBudget selects"
    } else {
        "a PodDisruptionBudget does not permit the eviction of"
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: {why} pod {namespace}/{name} on its Node {}, so it is never evicted.",
                head(case),
                node.name()
            ),
            Evidence::new(
                format!("Event/{}", event.metadata.name),
                "message",
                event.said(),
                "Karpenter waits for the eviction without a time limit if there is no terminationGracePeriod",
            )
            .figures(format!("{} times", event.times())),
        )
        .blaming(match pod.map(|pod| budgets(case, pod)).as_deref() {
            Some([budget]) => blame_budget(budget),
            _ => Blame::object("v1", "Pod", name).namespace(namespace),
        })
        .fix(format!(
            "Find out why the budget allows no disruption: maxUnavailable 0, minAvailable as high as the number of \
             replicas, or its pods are not Ready. Run one more replica, or correct the budget. The API server never \
             evicts a pod with two budgets.{}",
            limit(case)
        ))
        .inspect(
            "See which budget allows no disruption",
            format!("kubectl get poddisruptionbudgets -n {namespace} -o wide"),
        )
        .inspect("See the pod and its labels", format!("kubectl describe pod -n {namespace} {name}")),
    )
}

/// A budget that has allowed nothing for as long as any step may take, over a pod that Karpenter wants to evict.
/// Karpenter's event often only counts the pods that it waits for.
/// Source: kubernetes v1.36.3 component-helpers/apps/poddisruptionbudget/helpers.go `UpdateDisruptionAllowedCondition`.
pub(super) fn shut_budget(case: &Case, node: &Node) -> Option<Finding> {
    if is_bounded(case) {
        return None;
    }
    let taint = drain_taint(node)?;
    let long = |c: &Condition| c.last_transition_time.is_some_and(|at| case.now - at >= case.wait.proven * 2);
    let (pod, budget) = evicted(case, taint).find_map(|pod| {
        let budget = shut_over(case, pod).filter(|budget| budget.allowed().is_some_and(long))?;
        Some((pod, budget))
    })?;
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let (why, shut) = why_shut(budget);
    let of = &budget.metadata.name;
    let bound = bound(budget);
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "{}: PodDisruptionBudget {of}{bound} allows no disruption {why}, so pod {namespace}/{name} on its Node {} \
             is never evicted.",
            head(case),
            node.name()
        ),
        shut,
    )
    .with(Evidence::new(
        format!("Pod/{name}"),
        "metadata.labels",
        format!("selected by PodDisruptionBudget {of}"),
        "Karpenter waits for its eviction without a time limit if there is no terminationGracePeriod",
    ))
    .fix(format!(
        "Change PodDisruptionBudget {of} so that it allows one disruption: maxUnavailable 1, or a minAvailable below \
         the number of replicas. If its pods are not Ready, fix them.{}",
        limit(case)
    ));
    Some(have_it_allow(finding, budget))
}

/// A pod that more than one budget selects. The API server never evicts it, whatever the budgets allow, and Karpenter's
/// event only counts it among the pods that wait.
/// Source: kubernetes v1.36.3 pkg/registry/core/pod/storage/eviction.go `Create`.
pub(super) fn two_budgets(case: &Case, node: &Node) -> Option<Finding> {
    if is_bounded(case) {
        return None;
    }
    let taint = drain_taint(node)?;
    let (pod, mut budgets) =
        evicted(case, taint).map(|pod| (pod, budgets(case, pod))).find(|(_, budgets)| budgets.len() > 1)?;
    // The newest was added to what worked.
    budgets.sort_by_key(|budget| std::cmp::Reverse(budget.metadata.creation_timestamp));
    let newest = budgets.first()?;
    let (namespace, name) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let names: Vec<&str> = budgets.iter().map(|budget| &*budget.metadata.name).collect();
    let evidence = |budget: &&PodDisruptionBudget| {
        Evidence::new(
            format!("PodDisruptionBudget/{}", budget.metadata.name),
            "spec.selector",
            format!("selects pod {namespace}/{name}"),
            "the API server refuses an eviction if more than one budget selects the pod",
        )
    };
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "{}: more than one PodDisruptionBudget ({}) selects pod {namespace}/{name} on its Node {}, so it is \
                 never evicted.",
                head(case),
                names.join(", "),
                node.name()
            ),
            evidence(newest),
        )
        .with_all(budgets.iter().skip(1).map(evidence))
        .blaming(blame_budget(newest))
        .fix(format!(
            "Delete one of the PodDisruptionBudgets {}, or narrow its selector. The API server never evicts a pod with \
             two budgets, whatever they allow. This disrupts no pod except the one that the drain evicts.",
            names.join(", ")
        ))
        .inspect(
            "See the budgets",
            format!("kubectl get poddisruptionbudgets -n {namespace} {} -o yaml", names.join(" ")),
        )
        .change(
            "Narrow the newest, or delete it if the others protect the pod enough",
            format!("kubectl edit poddisruptionbudgets -n {namespace} {}", newest.metadata.name),
        ),
    )
}

/// The pods for whose eviction Karpenter needs the budgets' permission.
///
/// The API server ignores budgets for a pod that does not run. Karpenter does not evict a pod that tolerates its taint
/// or that the kubelet created, and waits for a pod that must not be disrupted.
/// Source: core pkg/utils/pod/scheduling.go `IsEvictable`, `IsDrainable` (v1.14.3).
fn evicted<'c>(case: &Case<'c>, taint: &Taint) -> impl Iterator<Item = &'c Pod> {
    case.pods().filter(move |pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.status.phase == "Running"
            && pod.metadata.annotation(DO_NOT_DISRUPT) != Some("true")
            && !pod.metadata.owner_references.iter().any(|owner| owner.kind == "Node")
            && !pod.spec.tolerations.iter().any(|t| t.tolerates(taint))
    })
}

/// The pod of `evicting pod shop/web-1 violates a PDB`, or of `evicting pod violates a PDB (Pod=shop/web-1)`.
/// Source: core pkg/controllers/node/termination/terminator/eviction.go `Reconcile` (v1.0.5, v1.14.3).
fn refused_pod(message: &str) -> Option<(&str, &str)> {
    if !message.contains("violates a PDB") && !message.contains(TWO_BUDGETS) {
        return None;
    }
    let pod = match message.split_once("(Pod=") {
        Some((_, pod)) => pod.split_once(')')?.0,
        None => message.split_once("evicting pod ")?.1.split(' ').next()?,
    };
    pod.split_once('/').filter(|(namespace, name)| is_name(namespace) && is_name(name))
}

#[cfg(test)]
mod tests {
    use super::refused_pod;

    #[test]
    fn the_pod_that_a_budget_holds_is_read_from_the_event_of_each_version() {
        let of = |said: &str| refused_pod(&format!("Failed to drain node, {said}")).map(|(n, p)| format!("{n}/{p}"));
        assert_eq!(of("evicting pod shop/web-1 violates a PDB").as_deref(), Some("shop/web-1"));
        assert_eq!(of("evicting pod violates a PDB (Pod=shop/web-1)").as_deref(), Some("shop/web-1"));
        assert_eq!(of("eviction does not support multiple PDBs (Pod=shop/web-1)").as_deref(), Some("shop/web-1"));
        assert_eq!(of("5 pods are waiting to be evicted"), None);
        assert_eq!(of("evicting pod violates a PDB (Pod=$(reboot)/x)"), None);
    }
}
