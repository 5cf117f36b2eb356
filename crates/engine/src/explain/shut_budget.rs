//! A PodDisruptionBudget that does not permit the eviction of a pod.

use crate::api::{Blame, Evidence};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Pod, PodDisruptionBudget};

/// The budgets that select a pod.
pub(crate) fn budgets<'c>(case: &Case<'c>, pod: &Pod) -> Vec<&'c PodDisruptionBudget> {
    case.cluster.disruption_budgets().filter(|budget| budget.selects(pod)).collect()
}

/// The one budget that selects a pod, if it does not permit its eviction now.
pub(crate) fn shut_over<'c>(case: &Case<'c>, pod: &Pod) -> Option<&'c PodDisruptionBudget> {
    let [budget] = budgets(case, pod)[..] else { return None };
    (budget.allows_nothing() && !budget.lets_go_unready(pod)).then_some(budget)
}

/// The situation in which it allows nothing, and the proof.
/// Source: kubernetes v1.36.3 pkg/controller/disruption/disruption.go `updatePdbStatus`, `failSafe`.
pub(crate) fn why_shut(budget: &PodDisruptionBudget) -> (&'static str, Evidence) {
    let failed = budget.allowed().is_some_and(|allowed| allowed.reason == "SyncFailed");
    let (why, because) = if failed || budget.status.expected_pods == 0 {
        (
            "because Kubernetes cannot tell how many pods there should be",
            "its pods have no controller that sets their number",
        )
    } else if budget.never_allows() {
        ("even while all of its pods are healthy", "it requires as many healthy pods as there should be")
    } else {
        ("while so few of its pods are healthy", "it allows one disruption once more of its pods are Ready")
    };
    let object = format!("PodDisruptionBudget/{}", budget.metadata.name);
    let evidence = match budget.allowed() {
        Some(allowed) => {
            Evidence::new(object, r#"status.conditions[?(@.type=="DisruptionAllowed")]"#, allowed.shown(), because)
        }
        None => Evidence::new(object, "status.disruptionsAllowed", "0", because),
    };
    (why, evidence)
}

/// ` (maxUnavailable: 0)`
pub(crate) fn bound(budget: &PodDisruptionBudget) -> String {
    budget.bound().map_or_else(String::new, |bound| format!(" ({bound})"))
}

pub(crate) fn blame_budget(budget: &PodDisruptionBudget) -> Blame {
    Blame::object("policy/v1", "PodDisruptionBudget", &budget.metadata.name)
        .namespace(budget.metadata.namespace.as_deref().unwrap_or("default"))
        .field("spec")
}

/// Blames a budget, and tells you how to make it allow a disruption.
pub(crate) fn have_it_allow(finding: Finding, budget: &PodDisruptionBudget) -> Finding {
    let (namespace, name) = (budget.metadata.namespace.as_deref().unwrap_or("default"), &budget.metadata.name);
    finding
        .blaming(blame_budget(budget))
        .inspect(
            "See what the budget requires, and how many of its pods are healthy",
            format!("kubectl describe poddisruptionbudgets -n {namespace} {name}"),
        )
        .change(
            "Change it to allow one disruption. The drain then continues by itself",
            format!("kubectl edit poddisruptionbudgets -n {namespace} {name}"),
        )
}
