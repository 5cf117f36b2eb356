//! The instance does not exist any more, but the NodeClaim does.

use crate::case::left_taint::SHUT_DOWN;
use crate::case::timestamp;
use crate::cluster_state::aws::INSTANCE;
use crate::cluster_state::memo::Memo;
use crate::facts::instance_state::{encryption, ended, gone};
use crate::objects::{Node, NodeClaim};
use crate::rules::prelude::*;

rule! {
    cause: InstanceEnded,
    summary: "The instance was stopped or terminated while Karpenter waited for its node",
    stages: [Join, Register, Initialize, Ready],
    reads: [Nodes, NodeClasses, AwsObservations],
    versions: "all; except for what the cloud controller reports, seen only if nodewhy may ask EC2 (--aws)",
}

/// The meaning of EC2's codes.
/// Source: aws-sdk-go-v2 service/ec2 types `StateReason`.
fn meaning(code: &str) -> &'static str {
    match code {
        "Client.InstanceInitiatedShutdown" => "the instance shut itself down",
        "Client.UserInitiatedShutdown" => "someone stopped or terminated it",
        "Client.VolumeLimitExceeded" => "the account reached its limit for the number or size of volumes",
        "Client.InvalidSnapshot.NotFound" => "the snapshot of its volume does not exist",
        "Client.InternalError" => {
            "EC2 could not launch it with these parameters, mostly because the key of an encrypted volume cannot be \
             used"
        }
        "Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown" => "EC2 took the Spot instance back",
        "Server.InsufficientInstanceCapacity" => "EC2 had no capacity for it",
        "Server.ScheduledStop" => "EC2 stopped it for maintenance",
        "Server.InternalError" => "a fault of EC2",
        _ => "EC2 gives no other reason",
    }
}

/// The cloud controller reports that the instance is stopped. If no Node is Ready, all nodes are stopped, perhaps on
/// purpose for the night.
fn stopped(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    static ANY_READY: Memo<bool> = Memo::new("whether any Node is Ready");
    let node = case.node.filter(|_| case.wait.symptom == Symptom::InstanceStopped)?;
    let taint = node.taint(SHUT_DOWN)?;
    if !*case.cluster.once(&ANY_READY, "", || case.cluster.nodes().any(Node::is_ready)) {
        return None;
    }
    let (name, id) = (claim.name(), claim.instance_id().unwrap_or("unknown"));
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "The instance {id} of NodeClaim {name} was stopped, as the cloud controller reports, and Node {} is \
                 not Ready since {}. Nothing starts the instance again, and Karpenter has not replaced it.",
                node.name(),
                case.since()
            ),
            Evidence::new(
                format!("Node/{}", node.name()),
                "spec.taints",
                taint.to_string(),
                "the cloud controller sets this taint if EC2 says that the instance is stopped or stopping",
            ),
        )
        .blaming(Blame::object("", "Instance", id))
        .fix(
            "Start the instance, or delete its NodeClaim: Karpenter then launches another node if pods need one. With \
             an interruption queue or the feature gate NodeRepair, Karpenter replaces such nodes by itself.",
        )
        .inspect(
            "See who stopped it",
            format!("aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue={id}"),
        )
        .destroy(
            "Replace the node (data that its pods keep on its disks is lost)",
            format!("kubectl delete nodeclaim {name}"),
        ),
    )
}

fn check(case: &Case) -> Option<Opinion> {
    if let Some(stopped) = case.claim.and_then(|claim| stopped(case, claim)) {
        return stopped.into();
    }
    let name = case.claim.map_or_else(|| case.subject(), |c| format!("NodeClaim {}", NodeClaim::name(c)));
    let id = case.instance_id()?;
    if let Some(gone) = gone(case) {
        let object = case.subject().to_ascii_lowercase();
        return Finding::new(
            Confidence::Certain,
            format!(
                "EC2 does not know the instance {id} of {name} any more. The instance ended more than an hour ago, but \
                 its object still exists."
            ),
            Evidence::new(
                format!("ec2:DescribeInstances {id}"),
                "Reservations",
                "none",
                "EC2 shows an ended instance for about an hour, and it shows other instances of this cluster",
            )
            .told_by_aws(gone.seen),
        )
        .fix("Delete the object that was left behind.")
        .inspect("See what blocks its deletion", format!("kubectl get {object} -o yaml"))
        .destroy("Delete it", format!("kubectl delete {object}"))
        .into();
    }
    let Some(ended) = ended(case) else {
        return match case.cluster.aws().instance(id).known() {
            Some((instance, _)) if instance.state == "running" => {
                let answer = case.cluster.aws().observation(INSTANCE, id);
                answer.map(|seen| Opinion::ruled_out(seen, format!("EC2 says that {id} runs")))
            }
            _ => None,
        };
    };
    // If the class encrypts its volumes, another rule says more.
    if ended.code.starts_with("Client.InvalidKMSKey")
        || (ended.code == "Client.InternalError" && encryption(case).is_some())
    {
        return None;
    }
    let message = ended.instance.message.as_deref().unwrap_or_default();
    let since = ended.instance.since.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    let code = if ended.code.is_empty() { "no reason given" } else { ended.code };
    let state = &ended.instance.state;
    Finding::new(
        Confidence::Certain,
        format!("The instance {id} of {name} is {state}{since} ({code}): {}.", meaning(ended.code)),
        Evidence::new(
            format!("ec2:DescribeInstances {id}"),
            "State, StateReason",
            format!("{state}, {code}: {message}"),
            "this instance never joins, and Kubernetes does not learn about it",
        )
        .told_by_aws(ended.seen),
    )
    .fix(
        "Find out who or what ended it. Karpenter launches another node after you delete the NodeClaim. With an \
         interruption queue, Karpenter learns of it at once.",
    )
    .inspect(
        "See who ended it",
        format!("aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue={id}"),
    )
    .into()
}
