//! A PodDisruptionBudget that lets a pod not go.

use crate::api::{Blame, Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Pod, PodDisruptionBudget};

/// The budgets that speak for a pod.
pub(crate) fn budgets<'c>(case: &Case<'c>, pod: &Pod) -> Vec<&'c PodDisruptionBudget> {
    case.cluster.disruption_budgets().filter(|budget| budget.selects(pod)).collect()
}

/// The one budget that speaks for a pod, where it lets this pod not go now.
pub(crate) fn shut_over<'c>(case: &Case<'c>, pod: &Pod) -> Option<&'c PodDisruptionBudget> {
    let [budget] = budgets(case, pod)[..] else { return None };
    (budget.allows_nothing() && !budget.lets_go_unready(pod)).then_some(budget)
}

/// When it allows nothing, and what says so.
/// Source: kubernetes v1.36.3 pkg/controller/disruption/disruption.go `updatePdbStatus`, `failSafe`.
pub(crate) fn why_shut(budget: &PodDisruptionBudget) -> (&'static str, Evidence) {
    let failed = budget.allowed().is_some_and(|allowed| allowed.reason == "SyncFailed");
    let (why, because) = if failed || budget.status.expected_pods == 0 {
        (
            "for nobody can tell how many pods it should have",
            "its pods have no controller that says how many there are to be",
        )
    } else if budget.never_allows() {
        ("even while all of its pods are healthy", "it asks for as many healthy pods as there are to be")
    } else {
        ("while so few of its pods are healthy", "it allows one once more of its pods are Ready")
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

/// Blames a budget, and says how to have it allow something.
pub(crate) fn have_it_allow(finding: Finding, budget: &PodDisruptionBudget) -> Finding {
    let (namespace, name) = (budget.metadata.namespace.as_deref().unwrap_or("default"), &budget.metadata.name);
    finding
        .blaming(blame_budget(budget))
        .step(
            Risk::Inspect,
            "See what the budget asks for, and how many of its pods are healthy",
            Some(format!("kubectl describe poddisruptionbudgets -n {namespace} {name}")),
        )
        .step(
            Risk::Mutating,
            "Have it allow one disruption; the drain then goes on by itself",
            Some(format!("kubectl edit poddisruptionbudgets -n {namespace} {name}")),
        )
}
