//! The instance is not there any more, and the NodeClaim still is.

use crate::api::{Confidence, Evidence, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::left_taint::SHUT_DOWN;
use crate::case::stage::Symptom;
use crate::case::{Case, timestamp};
use crate::cluster_state::aws::INSTANCE;
use crate::objects::NodeClaim;
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::instance_state::{encryption, ended, gone};

pub static RULE: Rule = Rule {
    cause: "InstanceEnded",
    summary: "The instance was stopped or terminated while its machine was waited for",
    stages: &[Stage::Join, Stage::Register, Stage::Initialize, Stage::Ready],
    reads: &[Input::Nodes, Input::NodeClasses, Input::AwsObservations],
    lint: false,
    versions: "all; but for what the cloud controller says, seen only where nodewhy may ask EC2 (--aws)",
    page: include_str!("../../../pages/InstanceEnded.md"),
    check,
};

/// What EC2's codes mean. Source: aws-sdk-go-v2 service/ec2 types `StateReason`.
fn meaning(code: &str) -> &'static str {
    match code {
        "Client.InstanceInitiatedShutdown" => "the machine shut itself down",
        "Client.UserInitiatedShutdown" => "somebody stopped or terminated it",
        "Client.VolumeLimitExceeded" => "the account's limit of volumes or of their size is reached",
        "Client.InvalidSnapshot.NotFound" => "the snapshot of its volume is not there",
        "Client.InternalError" => {
            "it could not be launched with what it was given, mostly an encrypted volume whose key cannot be used"
        }
        "Server.SpotInstanceTermination" | "Server.SpotInstanceShutdown" => "EC2 took the Spot instance back",
        "Server.InsufficientInstanceCapacity" => "EC2 had no capacity for it",
        "Server.ScheduledStop" => "EC2 stopped it for maintenance",
        "Server.InternalError" => "a fault of EC2",
        _ => "EC2 says no more",
    }
}

/// The cloud controller says that the instance is stopped. Where no Node is Ready, all machines sleep, as somebody may
/// mean them to at night.
fn stopped(case: &Case, claim: &NodeClaim) -> Option<Finding> {
    let node = case.node.filter(|_| case.wait.symptom == Symptom::InstanceStopped)?;
    let taint = node.taint(SHUT_DOWN)?;
    case.cluster.nodes().find(|other| other.is_ready())?;
    let (name, id) = (claim.name(), claim.instance_id().unwrap_or("unknown"));
    Some(
        Finding::new(
            Confidence::Certain,
            format!(
                "The instance {id} of NodeClaim {name} was stopped, as the cloud controller says, and Node {} is not Ready since {}: nobody starts it again, and Karpenter has not replaced it.",
                node.name(),
                case.since()
            ),
            Evidence::new(
                format!("Node/{}", node.name()),
                "spec.taints",
                taint.to_string(),
                "the cloud controller sets this taint where EC2 says that the instance is stopped or stopping",
            ),
        )
        .fix("Start the instance, or delete its NodeClaim: Karpenter then makes another machine where pods need one. An interruption queue, or the feature gate NodeRepair, lets Karpenter replace such machines by itself.")
        .step(Risk::Inspect, "See who stopped it", Some(format!("aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue={id}")))
        .step(Risk::Destructive, "Replace the machine; what its pods keep on its disks is lost", Some(format!("kubectl delete nodeclaim {name}"))),
    )
}

fn check(case: &Case) -> Opinion {
    if let Some(stopped) = case.claim.and_then(|claim| stopped(case, claim)) {
        return stopped.into();
    }
    let name = case.claim.map_or_else(|| case.subject(), |c| format!("NodeClaim {}", NodeClaim::name(c)));
    let Some(id) = case.instance_id() else { return Opinion::Silent };
    if let Some(gone) = gone(case) {
        let object = case.subject().to_ascii_lowercase();
        return Finding::new(
            Confidence::Certain,
            format!(
                "EC2 does not know the instance {id} of {name} any more: it ended more than an hour ago, and its object was left behind."
            ),
            Evidence::new(
                format!("ec2:DescribeInstances {id}"),
                "Reservations",
                "none",
                "EC2 shows an ended instance for about an hour; others of this cluster it shows",
            )
            .told_by_aws(gone.seen),
        )
        .fix("Delete the object that was left behind.")
        .step(Risk::Inspect, "See what holds it", Some(format!("kubectl get {object} -o yaml")))
        .step(Risk::Destructive, "Delete it", Some(format!("kubectl delete {object}")))
        .into();
    }
    let Some(ended) = ended(case) else {
        return match case.cluster.aws().instance(id).known() {
            Some((instance, _)) if instance.state == "running" => {
                let answer = case.cluster.aws().observation(INSTANCE, id);
                answer.map_or(Opinion::Silent, |seen| Opinion::ruled_out(seen, format!("EC2 says that {id} runs")))
            }
            _ => Opinion::Silent,
        };
    };
    // Where the class encrypts its volumes there is a rule that says more.
    if ended.code.starts_with("Client.InvalidKMSKey")
        || (ended.code == "Client.InternalError" && encryption(case).is_some())
    {
        return Opinion::Silent;
    }
    let message = ended.instance.message.as_deref().unwrap_or_default();
    let since = ended.instance.since.map_or_else(String::new, |at| format!(" at {}", timestamp(at)));
    let code = if ended.code.is_empty() { "no reason given" } else { ended.code };
    let state = &ended.instance.state;
    Finding::new(
        Confidence::Certain,
        format!("The instance {id} of {name} is {state}{since} ({code}): {}.", meaning(ended.code)),
        Evidence::new(format!("ec2:DescribeInstances {id}"), "State, StateReason", format!("{state}, {code}: {message}"), "nothing will come of this instance; Kubernetes is not told")
            .told_by_aws(ended.seen),
    )
    .fix("Look for who or what ended it; Karpenter makes another machine once the NodeClaim is deleted. An interruption queue lets Karpenter know at once.")
    .step(Risk::Inspect, "See who ended it", Some(format!("aws cloudtrail lookup-events --lookup-attributes AttributeKey=ResourceName,AttributeValue={id}")))
    .into()
}
