//! The Node object is gone but its machine is not: the scheduler cannot use it, and Karpenter still counts it.

use crate::objects::Condition;
use crate::rules::prelude::*;
use crate::upstream::node_events;

rule! {
    cause: NodeObjectDeleted,
    summary: "The Node was deleted in a way that bypasses Karpenter, so its NodeClaim and its instance still exist",
    stages: [Ready],
    reads: [Events],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (Some(claim), None, Symptom::NodeGone) = (case.claim, case.node, case.wait.symptom) else {
        return None;
    };
    let (name, node) = (claim.name(), &claim.status.node_name);
    let id = claim.instance_id().unwrap_or("INSTANCE");
    // Who deletes machines that are gone is up, and has not deleted this one.
    let missed = case.events().any(node_events::misses_node);
    Finding::new(
        if missed { Confidence::Certain } else { Confidence::Likely },
        format!(
            "Node {node} of NodeClaim {name} no longer exists: its deletion bypassed Karpenter. As far as Karpenter \
             knows, its instance {id} still runs, but the scheduler cannot use it."
        ),
        case.wait.evidence.clone(),
    )
    .with(Evidence::new(
        format!("NodeClaim/{name}"),
        r#"status.conditions[?(@.type=="Registered")]"#,
        claim.condition("Registered").map_or_else(String::new, Condition::shown),
        format!("it had a Node, {node}, but no Node with that name or providerID exists now"),
    ))
    .blaming(Blame::object("karpenter.sh/v1", "NodeClaim", name))
    .fix(
        "Delete the NodeClaim, so that Karpenter terminates the instance with its pods. A running kubelet does not \
         recreate its Node, and Karpenter disrupts no machine without a Node. Removing the finalizer by hand bypasses \
         Karpenter: delete the Node or the NodeClaim, and keep the finalizer.",
    )
    .destroy("Replace the machine", format!("kubectl delete nodeclaim {name}"))
    .ask_aws(
        "Does the instance still run?",
        format!(
            "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].[State,LaunchTime]'"
        ),
    )
    .into()
}
