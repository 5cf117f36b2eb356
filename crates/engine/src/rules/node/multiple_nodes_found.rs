//! Two Nodes carry the providerID of one NodeClaim.

use crate::objects::Node;
use crate::rules::prelude::*;

rule! {
    cause: MultipleNodesFound,
    summary: "Two Nodes have the same providerID, so Karpenter registers neither",
    stages: [Register],
    reads: [Nodes],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let claim = case.claim?;
    let mut nodes: Vec<&Node> = case.cluster.nodes_with_provider_id(&claim.status.provider_id).collect();
    nodes.sort_by_key(|n| n.metadata.creation_timestamp);
    // Source: core pkg/controllers/nodeclaim/lifecycle/registration.go (v1.14.3); the refusal is sticky.
    let refused = claim.condition("Registered").filter(|c| c.is_false() && c.reason == "MultipleNodesFound");
    let names = nodes.iter().map(|n| n.name()).collect::<Vec<_>>().join(" and ");
    if refused.is_none() && nodes.len() < 2 {
        return None;
    }
    let summary = match nodes.as_slice() {
        [_, _, ..] => format!(
            "Nodes {names} have the same providerID, so Karpenter registers NodeClaim {} with neither and deletes it.",
            claim.name()
        ),
        _ => format!(
            "Karpenter found several Nodes with the providerID of NodeClaim {}, so it registers none of them and \
             deletes the NodeClaim.",
            claim.name()
        ),
    };
    let mut finding = Finding::new(
        Confidence::Certain,
        summary,
        Evidence::new(
            case.subject(),
            "status.providerID",
            claim.status.provider_id.clone(),
            "Karpenter matches NodeClaim and Node by this id, and needs exactly one Node",
        ),
    )
    .with_all(nodes.iter().map(|n| {
        Evidence::new(format!("Node/{}", n.name()), "spec.providerID", n.spec.provider_id.clone(), "the same id again")
    }))
    .fix(
        "Keep the kubelet from registering under a second name (hostname override). Then delete the Node that no \
         kubelet updates, which disrupts nothing.",
    )
    .inspect(
        "See which of the Nodes still has a heartbeat",
        format!("kubectl get nodes {}", names.replace(" and ", " ")),
    );
    if let Some(second) = nodes.last() {
        finding = finding.blaming(Blame::object("v1", "Node", second.name()).field("spec.providerID"));
    }
    finding.into()
}
