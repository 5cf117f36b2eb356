//! The Node registered without the unregistered taint, and userData does not explain it.

use crate::facts::missing_taints;
use crate::rules::prelude::*;
use crate::upstream::karpenter::UNREGISTERED_TAINT;

rule! {
    cause: UnregisteredTaintMissing,
    summary: "The Node was created without karpenter.sh/unregistered, which this Karpenter requires, and userData does \
              not explain it",
    stages: [Register],
    reads: [Deployments],
    versions: "AWS provider 1.0.0–1.0.8, 1.1.0–1.1.3, 1.2.0–1.2.1 (core 1.0.0–1.0.5, 1.1.0–1.1.1, 1.2.0)",
}

/// Kubernetes before 1.36 has no mutating policies, and kubectl returns nothing if one kind of a list is unknown.
/// Source: kubernetes v1.36.3 pkg/apis/admissionregistration/install, kubectl v0.36.3 pkg/cmd/get.
const WHAT_MUTATES: &str =
    "kubectl get mutatingwebhookconfigurations -o yaml; kubectl get mutatingadmissionpolicies -o yaml";

fn check(case: &Case) -> Option<Opinion> {
    let question = match missing_taints::ask(case) {
        Ok(question) if question.refused => question,
        Ok(_) => return None,
        Err(answer) => return answer,
    };
    let claim = question.claim.name();
    let version = case.karpenter().map_or_else(String::new, |k| format!(" {}", k.version));
    let older = question.node.filter(|n| n.metadata.creation_timestamp < question.claim.metadata.creation_timestamp);
    // The kubelet hands its taints over only when it creates the Node.
    // Source: kubernetes v1.36.3 pkg/kubelet/kubelet_node_status.go `tryRegisterWithAPIServer`.
    let (why, confidence) = match older {
        Some(node) => (
            format!(
                "Node {} is older than the instance: its kubelet uses a leftover Node, and sets taints only on a new \
                 one",
                node.name()
            ),
            Confidence::Certain,
        ),
        None => (
            "The Node came without it: an admission policy or webhook removed it, or the kubelet's configuration lacks \
             it"
                .to_owned(),
            Confidence::Likely,
        ),
    };
    let summary = format!(
        "Karpenter{version} rejects the Node of NodeClaim {claim} because {UNREGISTERED_TAINT} was missing when it \
         appeared. {why}."
    );
    let evidence = Evidence::new(
        format!("NodeClaim/{claim}"),
        r#"status.conditions[?(@.type=="Registered")]"#,
        case.wait.evidence.observed.clone(),
        "Karpenter checks once: if you add the taint now, this node stays unregistered",
    );
    let finding = Finding::new(confidence, summary, evidence).with_all(question.evidence(case));
    let finding = match question.node {
        Some(node) => finding.blaming(Blame::object("v1", "Node", node.name()).field("spec.taints")),
        None => finding,
    };
    let finding = match older {
        Some(node) => finding
            .fix(
                "Delete the leftover Node, so that the kubelet creates a new one. Pods that are assigned to it \
                 restart.",
            )
            .destroy("Delete the Node", format!("kubectl delete node {}", node.name())),
        None => finding
            .fix(
                "Find the webhook or policy that changes Nodes on creation, or upgrade Karpenter: later versions \
                 register such Nodes and warn. Then replace the node, which evicts its pods.",
            )
            .inspect("See what may change Nodes", WHAT_MUTATES.to_owned())
            .unknown("Does a mutating webhook or admission policy change Nodes?", WHAT_MUTATES),
    };
    finding
        .destroy(
            "Then replace the node, because Karpenter does not check it again",
            format!("kubectl delete nodeclaim {claim}"),
        )
        .change("Upgrade Karpenter to 1.0.9, 1.1.4, 1.2.2, 1.3.0 or later", None)
        .into()
}
