//! Who replaces a broken node: Karpenter, its node group, or you.

use crate::api::Evidence;
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Event, NodeClaim};
use crate::upstream::karpenter::{DO_NOT_REPAIR, Karpenter};
use chrono::{DateTime, Utc};

/// What keeps Karpenter's node repair from the node.
pub(crate) struct Unrepaired {
    /// The rest of "Karpenter's node repair does not replace it: …".
    pub why: String,
    evidence: Evidence,
}

/// Adds what Karpenter will do about a Node that stays as it is. A Node without NodeClaim belongs to its node group.
///
/// Source: karpenter-provider-aws pkg/cloudprovider/cloudprovider.go `RepairPolicies` (v1.14.1, v1.15.0); core
/// pkg/controllers/node/health (v1.14.1), pkg/controllers/disruption/repair.go (v1.15.0).
pub fn who_replaces(case: &Case, finding: Finding) -> Finding {
    let Some(claim) = case.claim.filter(|c| c.is_true("Registered")) else { return finding };
    let finding = finding.with_all(reboot(case, claim));
    if let Some(unrepaired) = unrepaired(case, None) {
        return finding.with(unrepaired.evidence);
    }
    let Some((karpenter, repairs)) = case.karpenter().and_then(|k| Some((k, k.gate("NodeRepair")?))) else {
        return finding;
    };
    let because = match (repairs, karpenter.repairs_within_budgets()) {
        (false, _) => "Karpenter never replaces a Node for being unhealthy, so you have to delete its NodeClaim",
        (true, false) => {
            "Karpenter replaces a Node that stays unhealthy for 30 minutes (10 for accelerators), unless more than 20 \
             % of its NodePool are"
        }
        (true, true) => {
            "Karpenter replaces a Node that stays unhealthy for 30 minutes (10 for some errors of a GPU), as \
             disruption budgets for the reason Unhealthy allow, unless more than 20 % of its NodePool are"
        }
    };
    finding.with(Evidence::new(karpenter.source.clone(), "FEATURE_GATES", format!("NodeRepair={repairs}"), because))
}

/// A reboot in place that is under way, or that failed. After most failures Karpenter deletes the NodeClaim.
/// Source: core pkg/controllers/nodeclaim/reboot/controller.go `transitionToFailed`, events/events.go (v1.15.0).
fn reboot(case: &Case, claim: &NodeClaim) -> Option<Evidence> {
    if let Some(rebooting) = claim.condition("Rebooting").filter(|rebooting| rebooting.is_true()) {
        let object = format!("NodeClaim/{}", claim.name());
        let because = "Karpenter reboots the node to repair it, and replaces it if that takes too long";
        let field = r#"status.conditions[?(@.type=="Rebooting")]"#;
        return Some(Evidence::new(object, field, rebooting.shown(), because));
    }
    let failed = case.event("RebootFailed")?;
    Some(said(failed, "Karpenter tried to reboot the node to repair it"))
}

/// Why Karpenter's node repair leaves the node as it is: the Node asks for it, or Karpenter has said so since this
/// time.
pub(crate) fn unrepaired(case: &Case, since: Option<DateTime<Utc>>) -> Option<Unrepaired> {
    let claim = case.claim?;
    if let Some(veto) = veto(case) {
        return Some(veto);
    }
    let is_since = |event: &&Event| since.is_none_or(|since| event.last_seen().is_some_and(|at| at >= since));
    let of_machine = case.events().filter(|event| blocks_repair(event)).filter(is_since);
    if let Some(event) = of_machine.max_by_key(|event| event.last_seen()) {
        return Some(held_back(event));
    }
    // A node that is not initialized needs no budget.
    let pool = claim.node_pool()?;
    if !claim.is_true("Initialized") {
        return None;
    }
    let of_pool = case.cluster.events("NodePool", pool).filter(|event| lacks_budget(event)).filter(is_since);
    of_pool.max_by_key(|event| event.last_seen()).map(held_back)
}

fn held_back(event: &Event) -> Unrepaired {
    let because = if event.reason == "NodeRepairBlocked" {
        "Karpenter would replace the node, but does not: if more than 20 % of a NodePool are unhealthy, it suspects a \
         common reason"
    } else {
        "Karpenter would repair the node, but does not"
    };
    Unrepaired { why: event.said().trim_end_matches('.').to_owned(), evidence: said(event, because) }
}

/// The annotation on the Node that forbids its repair. Once the Node is registered, the NodeClaim's own does not count.
/// Source: core pkg/controllers/disruption/repair.go `ShouldDisrupt`, pkg/controllers/state/statenode.go `Annotations`
/// (v1.15.0).
pub(crate) fn veto(case: &Case) -> Option<Unrepaired> {
    let repairs = |k: &&Karpenter| k.gate("NodeRepair") == Some(true) && k.repairs_within_budgets();
    let node = case.node.filter(|node| node.metadata.annotation(DO_NOT_REPAIR) == Some("true"))?;
    case.karpenter().filter(repairs)?;
    let because = "this annotation forbids Karpenter to repair the node";
    let field = format!("metadata.annotations['{DO_NOT_REPAIR}']");
    Some(Unrepaired {
        why: format!("the annotation {DO_NOT_REPAIR} of the Node forbids it"),
        evidence: Evidence::new(format!("Node/{}", node.name()), field, "true", because),
    })
}

/// Whether Karpenter says of a machine that it does not repair it. Of other disruptions it says so by the same reason.
/// Source: core pkg/controllers/disruption/repair.go, types.go `NewCandidate` (v1.15.0), pkg/controllers/node/health
/// (v1.14.1).
fn blocks_repair(event: &Event) -> bool {
    if event.reason == "NodeRepairBlocked" {
        return true;
    }
    event.reason == "DisruptionBlocked"
        && (event.message.contains("repair is blocked through the")
            || event.message.contains("repair requires a")
            || event.message.contains("cannot stage a replacement"))
}

/// Whether Karpenter says of a NodePool that no budget allows the repair of a node.
/// Source: core pkg/controllers/disruption/events/events.go `NodePoolBlockedForDisruptionReason` (v1.15.0).
fn lacks_budget(event: &Event) -> bool {
    event.reason == "DisruptionBlocked"
        && event.message.starts_with("No allowed disruptions for disruption reason Unhealthy")
}

fn said(event: &Event, because: &'static str) -> Evidence {
    Evidence::new(format!("Event/{}", event.metadata.name), "message", event.said(), because)
}

/// The step that replaces the node. Without a NodeClaim its node group replaces it.
pub(crate) fn or_replace(case: &Case, finding: Finding) -> Finding {
    let Some(claim) = case.claim else { return finding };
    let step = match case.node {
        Some(_) => "Replace the node. Karpenter drains its pods first",
        None => "Replace the instance, which has no Node",
    };
    finding.destroy(step, format!("kubectl delete nodeclaim {}", claim.name()))
}
