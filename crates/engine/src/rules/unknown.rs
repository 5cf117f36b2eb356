//! No rule fits: say what the machine waits for, and which commands would show more. Never guess.

use crate::explain::commands;
use crate::explain::instance_questions::ask_the_instance;
use crate::explain::logged;
use crate::objects::{Node, NodeClaim, NodePool};
use crate::rules::prelude::*;

pub const CAUSE: &str = "Unknown";

/// Keeps what a deleted machine takes with it.
pub const SAVE: &str = "nodewhy collect > nodewhy-dump.json";

/// The page of this verdict.
pub const PAGE: &str = include_str!("../../pages/Unknown.md");

/// The verdict if no rule has one.
pub fn finding(case: &Case) -> Finding {
    let subject = case.subject().replacen('/', " ", 1);
    let since = case.since();
    let summary = match case.stage() {
        Stage::Launch => format!("{subject} has shown no instance since {since}, and no object shows the reason."),
        Stage::Join => {
            let instance = case.claim.and_then(|c| c.instance_id()).unwrap_or("The instance");
            format!(
                "{instance} of {subject} was launched at {since} but no Node has joined, and no object shows the \
                 reason."
            )
        }
        Stage::Register => {
            format!(
                "{subject} has a Node that Karpenter has not registered since {since}, and no object shows the reason."
            )
        }
        _ if case.wait.symptom == Symptom::RebootPending => {
            format!("Karpenter has been about to reboot {subject} since {since}, and no object shows the reason.")
        }
        Stage::Initialize => {
            format!("{subject} has been registered but not initialized since {since}, and no object shows the reason.")
        }
        Stage::Ready if case.wait.symptom == Symptom::ByTurns => {
            format!(
                "{subject} has been flapping between Ready and NotReady since {since}, and no object shows the reason."
            )
        }
        Stage::Ready => format!("{subject} has not been Ready since {since}, and no object shows the reason."),
        Stage::Terminate => format!("{subject} has been terminating since {since}, and no object shows the reason."),
    };
    // What keeps it from going tells nothing of why it did not come, but is the next trouble.
    let leaves = case.claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some());
    let said = logged::unexplained(case).or_else(|| logged::holds(case).filter(|_| leaves));
    let summary = summary + &said.map_or_else(String::new, logged::quoted);
    let finding = Finding::new(Confidence::Possible, summary, case.wait.evidence.clone())
        .with_all(logged::last_steps(case))
        .with_all(said.map(|fact| logged::told(fact, "nodewhy does not know the line, but it may be the cause")));
    let finding = match case.stage() {
        Stage::Join => of_former_image(case, ask_the_instance(case, finding)),
        Stage::Launch => finding
            .unknown("Does Karpenter run, and is it the leader?", "kubectl get pods,lease -A | grep karpenter")
            .unknown(
                "Which error does Karpenter log about this NodeClaim?",
                format!("{} | grep {}", commands::karpenter_log(case), name(case)),
            ),
        Stage::Register => finding
            .unknown(
                "Which error does Karpenter log about this NodeClaim?",
                format!("{} | grep {}", commands::karpenter_log(case), name(case)),
            )
            .unknown(
                "Does an admission webhook reject changes of Nodes?",
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml",
            ),
        Stage::Initialize | Stage::Ready => {
            let finding = match case.node {
                Some(node) => finding
                    .unknown("Does the Node or a pod report errors?", format!("kubectl describe node {}", node.name())),
                None => finding,
            };
            ask_the_instance(case, finding)
        }
        Stage::Terminate => {
            finding.unknown("What blocks the drain?", format!("kubectl describe nodeclaim {}", name(case)))
        }
    };
    finding
        .fix("Run the command of each open question while the machine still exists. These commands disrupt nothing.")
        .inspect("Save the evidence before Karpenter deletes the machine", SAVE.to_owned())
}

/// No rule judges an image by what its class selects now.
fn of_former_image(case: &Case, finding: Finding) -> Finding {
    let (Some(image), Some(class)) = (case.former_image(), case.class_object()) else { return finding };
    if case.cluster.aws().image(image).known().is_some() {
        return finding;
    }
    finding
        .with(Evidence::new(
            case.subject(),
            "status.imageID",
            image,
            format!("not in status.amis of {class} any more, so nodewhy does not know its name and version"),
        ))
        .ask_aws(
            format!("Which image is {image}? Do its system, architecture and Kubernetes version fit?"),
            format!("aws ec2 describe-images --image-ids {image} --query 'Images[].[Name,Architecture,State]'"),
        )
}

fn name<'c>(case: &'c Case) -> &'c str {
    case.claim
        .map(NodeClaim::name)
        .or_else(|| case.node.map(Node::name))
        .or_else(|| case.pool().map(NodePool::name))
        .unwrap_or_default()
}
