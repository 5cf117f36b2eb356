//! Nodes with one instance type or architecture never join, while nodes with others do.

use crate::explain::contrast;
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::logged;
use crate::objects::NodeClaim;
use crate::rules::prelude::*;

rule! {
    cause: InstanceTypeNeverJoins,
    summary: "Nodes of one instance type or architecture never join, while others of the class do",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, AwsAuth, Deployments, AwsObservations],
    versions: "all",
}

const TYPE: &str = "node.kubernetes.io/instance-type";

fn check(case: &Case) -> Option<Opinion> {
    let (class, claim) = (case.class()?, case.claim?);
    let finding = if let Some(finding) = swapping(case, claim) {
        finding
    } else {
        let kinds = ["instance type", "instance family", "architecture"];
        // The wider group says more: all nodes of arm64 rather than those of one type.
        let widest = ["architecture", "instance family", "instance type"]
            .into_iter()
            .find_map(|what| contrast::suspicion(case, what, &kinds));
        let (split, confidence) = widest?;
        // For a family or an architecture, perhaps only one type was tried.
        let type_ = claim.metadata.label(TYPE).filter(|type_| *type_ != split.value);
        let all = type_.filter(|type_| contrast::splits(case).any(|s| s.value == *type_ && s.failed == split.failed));
        let tried = all.map_or_else(String::new, |type_| format!(" (all of type {type_})"));
        let summary = format!(
            "No node of {} {} with {} {}{tried} has joined, while all others have. Most likely the image or the user \
             data does not fit it.",
            class.kind,
            class.name(),
            split.dimension.what,
            split.value
        );
        contrast::finding(case, &split, confidence, summary)
    };
    let finding = finding.fix(
        "Exclude these instance types in the NodePool's requirements. Then read the console output of one of the \
         failing instances.",
    );
    let finding = match claim.node_pool() {
        Some(pool) => finding
            .blaming(Blame::object("karpenter.sh/v1", "NodePool", pool).field("spec.template.spec.requirements"))
            .change("Exclude the type", format!("kubectl edit nodepool {pool}")),
        None => finding,
    };
    finding.inspect("Read the console output of this instance", logged::command(case)).into()
}

/// Types of the first generations come with swap, and the kubelet refuses to start with swap on.
/// Source: <https://karpenter.sh/docs/troubleshooting/> "Swap on c1, m1, m2 instance types".
fn swapping(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    let type_ = claim.metadata.label(TYPE)?;
    let old = ["c1.", "m1.", "m2."].iter().any(|family| type_.starts_with(family));
    if !old || case.class_members().is_some_and(|class_members| class_members.joined_with("instance type", type_) > 0) {
        return None;
    }
    let summary = format!(
        "NodeClaim {} runs on {type_}, a type of the first generations that comes with swap on. The kubelet refuses to \
         start with swap on.",
        claim.name()
    );
    let evidence = Evidence::new(
        case.subject(),
        "metadata.labels['node.kubernetes.io/instance-type']",
        type_,
        "the image formats the instance store as swap at boot",
    );
    Some(ask_the_instance(case, Finding::new(Confidence::Likely, summary, evidence)))
}
