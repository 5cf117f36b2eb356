//! Who replaces a broken node: Karpenter, its node group, or you.

use crate::api::{Evidence, Risk};
use crate::case::Case;
use crate::case::finding::Finding;

/// Adds what Karpenter will do about a Node that stays as it is. A Node without NodeClaim belongs to its node group.
///
/// Source: karpenter-provider-aws v1.14.1 pkg/cloudprovider/cloudprovider.go `RepairPolicies`; core
/// pkg/controllers/node/health (v1.14.1).
pub fn who_replaces(case: &Case, finding: Finding) -> Finding {
    if !case.claim.is_some_and(|c| c.is_true("Registered")) {
        return finding;
    }
    if let Some(blocked) = case.event("NodeRepairBlocked") {
        let because = "Karpenter would replace the node, but does not: if more than 20 % of a NodePool are unhealthy, it suspects a common reason";
        return finding.with(Evidence::new(
            format!("Event/{}", blocked.metadata.name),
            "message",
            blocked.said(),
            because,
        ));
    }
    match case.karpenter().and_then(|k| Some((k, k.gate("NodeRepair")?))) {
        Some((karpenter, false)) => finding.with(Evidence::new(
            karpenter.source.clone(),
            "FEATURE_GATES",
            "NodeRepair=false",
            "Karpenter never replaces a Node for being unhealthy, so you have to delete its NodeClaim",
        )),
        Some((karpenter, true)) => finding.with(Evidence::new(
            karpenter.source.clone(),
            "FEATURE_GATES",
            "NodeRepair=true",
            "Karpenter replaces a Node that stays unhealthy for 30 minutes (10 for accelerators), unless more than 20 % of its NodePool are",
        )),
        None => finding,
    }
}

/// The step that replaces the node. Without a NodeClaim its node group replaces it.
pub(crate) fn or_replace(case: &Case, finding: Finding) -> Finding {
    match case.claim {
        Some(claim) => finding.step(
            Risk::Destructive,
            "Replace the node. Karpenter drains its pods first",
            Some(format!("kubectl delete nodeclaim {}", claim.name())),
        ),
        None => finding,
    }
}
