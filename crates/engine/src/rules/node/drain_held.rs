//! The Node is cordoned and empty except for pods that a PodDisruptionBudget protects from eviction.

use crate::case::held_drain::stays;
use crate::explain::shut_budget::{bound, have_it_allow, shut_over, why_shut};
use crate::objects::{NodeClaim, Pod, PodDisruptionBudget};
use crate::rules::prelude::*;

rule! {
    cause: DrainHeld,
    summary: "The Node is cordoned and empty except for pods that a PodDisruptionBudget does not let a drain evict",
    stages: [Ready],
    reads: [Pods, DisruptionBudgets],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (Some(node), Symptom::DrainHeld) = (case.node, case.wait.symptom) else { return None };
    let here: Vec<&Pod> = case.pods().filter(|pod| !pod.has_ended()).collect();
    // A dump may hold the pods of some namespaces only.
    let whole = here.iter().any(|pod| stays(pod)) && case.claim.is_none_or(|claim| had_more(claim, here.len()));
    let left: Vec<&Pod> = here.into_iter().filter(|pod| !stays(pod)).collect();
    // One that is only short of healthy pods may let them go yet.
    let never = |pod: &Pod| shut_over(case, pod).is_some_and(PodDisruptionBudget::never_allows);
    let leaves = |pod: &&Pod| pod.metadata.deletion_timestamp.is_some() || !never(pod);
    // A cordon alone is somebody's decision: that the Node was to be emptied shows in what has gone.
    let (pod, others) = left.split_first().filter(|_| whole && !left.iter().any(leaves))?;
    let budget = shut_over(case, pod)?;
    let (why, shut) = why_shut(budget);
    let (of, name) = (&budget.metadata.name, node.name());
    let (namespace, pod) = (pod.metadata.namespace.as_deref().unwrap_or("default"), &pod.metadata.name);
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    let who = match case.claim {
        Some(_) => "Karpenter does not remove the Node either",
        None => "EKS, which updates the node group, gives up after 15 minutes (PodEvictionFailure)",
    };
    let finding = Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is cordoned since {} and empty but for pod {namespace}/{pod}{more}: PodDisruptionBudget \
             {of}{} allows no disruption {why}, so no drain of it ever ends, and {who}.",
            case.since(),
            bound(budget)
        ),
        shut,
    );
    let finding = have_it_allow(of_owner(finding, case, of), budget);
    let finding = match case.claim {
        Some(claim) => finding.destroy(
            "To have the node removed, delete its NodeClaim. Karpenter drains the node first",
            format!("kubectl delete nodeclaim {}", claim.name()),
        ),
        None => finding,
    };
    finding
        .step(
            Risk::LowRisk,
            "Or uncordon the node, so that pods can run there again",
            Some(format!("kubectl uncordon {name}")),
        )
        .into()
}

/// The part that depends on the Node's owner.
fn of_owner(finding: Finding, case: &Case, budget: &str) -> Finding {
    let allow = format!(
        "Change PodDisruptionBudget {budget} so that it allows one disruption: maxUnavailable 1, or a minAvailable \
         below the number of replicas."
    );
    let Some(claim) = case.claim else {
        return finding.fix(format!(
            "{allow} Then start the update of the node group again. With its force option, the update also deletes \
             pods that a budget holds."
        ));
    };
    finding
        .with(Evidence::new(
            format!("NodeClaim/{}", claim.name()),
            "spec.resources.requests.pods",
            claim.spec.resources.requests.get("pods").unwrap_or_default(),
            "Karpenter launched the node for more pods than remain on it",
        ))
        .fix(format!(
            "{allow} To have the node removed, delete its NodeClaim, since a cordon alone does not ask Karpenter for \
             that. A terminationGracePeriod limits the drain. To keep the node, uncordon it."
        ))
}

/// Whether Karpenter launched the node for more pods than run there.
/// Source: core pkg/controllers/provisioning/scheduling/nodeclaim.go, `spec.resources.requests` of what is simulated
/// (v1.14.3).
fn had_more(claim: &NodeClaim, here: usize) -> bool {
    claim.spec.resources.requests.get("pods").and_then(|pods| pods.parse().ok()).is_some_and(|pods: usize| pods > here)
}
