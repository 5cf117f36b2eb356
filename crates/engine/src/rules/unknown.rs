//! No rule fits: say what the machine waits for, and what would tell more. Never a guess.

use crate::api::{Confidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::case::stage::Symptom;
use crate::objects::{Node, NodeClaim, NodePool};
use crate::rules::shared::commands;
use crate::rules::shared::instance_questions::ask_the_instance;
use crate::rules::shared::logged;

pub const CAUSE: &str = "Unknown";

/// The page of this verdict.
pub const PAGE: &str = include_str!("../../pages/Unknown.md");

/// The verdict where no rule has one.
pub fn finding(case: &Case) -> Finding {
    let subject = case.subject().replacen('/', " ", 1);
    let since = case.since();
    let summary = match case.stage() {
        Stage::Launch => format!("{subject} has shown no instance since {since}, and the objects do not tell why."),
        Stage::Join => {
            let instance = case.claim.and_then(|c| c.instance_id()).unwrap_or("The instance");
            format!(
                "{instance} of {subject} was launched at {since} and no Node has joined; the objects do not tell why."
            )
        }
        Stage::Register => {
            format!(
                "{subject} has a Node that Karpenter has not registered since {since}, and the objects do not tell why."
            )
        }
        Stage::Initialize => {
            format!("{subject} has been registered but not initialized since {since}, and the objects do not tell why.")
        }
        Stage::Ready if case.wait.symptom == Symptom::ByTurns => {
            format!("{subject} has been Ready and NotReady by turns since {since}, and the objects do not tell why.")
        }
        Stage::Ready => format!("{subject} has not been Ready since {since}, and the objects do not tell why."),
        Stage::Terminate => format!("{subject} has been terminating since {since}, and the objects do not tell why."),
    };
    // What keeps it from going tells nothing of why it did not come, but is the next trouble.
    let leaves = case.claim.is_some_and(|claim| claim.metadata.deletion_timestamp.is_some());
    let said = logged::unexplained(case).or_else(|| logged::holds(case).filter(|_| leaves));
    let summary = summary + &said.map_or_else(String::new, logged::quoted);
    let finding = Finding::new(Confidence::Possible, summary, case.wait.evidence.clone())
        .with_all(logged::last_steps(case))
        .with_all(said.map(|fact| logged::told(fact, "nodewhy does not know the line; it may be the cause")));
    let finding = match case.stage() {
        Stage::Join => ask_the_instance(case, finding),
        Stage::Launch => finding
            .unknown("Does Karpenter run, and is it the leader?", "kubectl get pods,lease -A | grep karpenter")
            .unknown(
                "What does Karpenter log about it?",
                format!("{} | grep {}", commands::karpenter_log(case), name(case)),
            ),
        Stage::Register => finding
            .unknown(
                "What does Karpenter log about it?",
                format!("{} | grep {}", commands::karpenter_log(case), name(case)),
            )
            .unknown(
                "Does an admission webhook refuse changes to Nodes?",
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml",
            ),
        Stage::Initialize | Stage::Ready => {
            let finding = match case.node {
                Some(node) => finding
                    .unknown("What do the Node and its pods say?", format!("kubectl describe node {}", node.name())),
                None => finding,
            };
            ask_the_instance(case, finding)
        }
        Stage::Terminate => {
            finding.unknown("What blocks the drain?", format!("kubectl describe nodeclaim {}", name(case)))
        }
    };
    finding.fix("Run the commands under \"not known\" while the machine still exists.").step(
        Risk::Inspect,
        "Keep the evidence before the machine is deleted",
        Some("nodewhy collect > nodewhy-dump.json".to_owned()),
    )
}

fn name<'c>(case: &'c Case) -> &'c str {
    case.claim
        .map(NodeClaim::name)
        .or_else(|| case.node.map(Node::name))
        .or_else(|| case.pool().map(NodePool::name))
        .unwrap_or_default()
}
