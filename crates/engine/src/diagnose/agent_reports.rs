//! The EKS node monitoring agent's reports about a Node that waits. Evidence beside the cause, never a cause.
//!
//! The agent reads logs: one line at boot may set a condition for good (aws/eks-node-monitoring-agent#215).

use crate::api::{Evidence, Stage};
use crate::case::Case;

/// Its conditions are True when all is well. Source: eks-node-monitoring-agent v1.7.0 pkg/conditions.
const CONDITIONS: [&str; 5] =
    ["NetworkingReady", "KernelReady", "StorageReady", "ContainerRuntimeReady", "AcceleratedHardwareReady"];

/// Its conditions that are False, and its warnings from the time of the wait.
pub fn evidence(case: &Case) -> Vec<Evidence> {
    let Some(node) = case.node.filter(|_| matches!(case.stage(), Stage::Initialize | Stage::Ready)) else {
        return Vec::new();
    };
    let object = format!("Node/{}", node.name());
    let because = "the node monitoring agent's report; it keeps the report after the fault has passed";
    let conditions = CONDITIONS.iter().filter_map(|type_| node.condition(type_)).filter(|c| c.is_false());
    let conditions = conditions
        .map(|c| Evidence::new(&object, format!(r#"status.conditions[?(@.type=="{}")]"#, c.type_), c.shown(), because));
    // Warnings are Events with the condition's type as their reason.
    let warnings =
        case.events().filter(|e| CONDITIONS.contains(&e.reason.as_str()) && e.reporter().contains("monitoring-agent"));
    let warnings = warnings.filter(|e| e.last_seen() >= Some(case.wait.since));
    let warnings = warnings.map(|e| {
        Evidence::new(
            format!("Event/{}", e.metadata.name),
            "message",
            e.said(),
            "a warning of the node monitoring agent",
        )
    });
    conditions.chain(warnings).collect()
}
