//! No rule fits: say what the machine waits for, and what would tell more. Never a guess.

use crate::api::{Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::objects::{Node, NodeClaim, NodePool};
use crate::rules::shared::node_role;
use crate::rules::shared::told_by_aws::{or_ask, seen};

pub const CAUSE: &str = "Unknown";

/// The page of this verdict.
pub const PAGE: &str = include_str!("../../pages/Unknown.md");

/// The verdict where no rule has one.
#[must_use]
pub fn finding(case: &Case) -> Finding {
    let subject = case.subject().replacen('/', " ", 1);
    let since = case.since();
    let summary = match case.stage() {
        Stage::Launch => format!("{subject} has shown no instance since {since}, and the objects do not tell why."),
        Stage::Join => {
            let instance = case.claim.and_then(|c| c.instance_id()).unwrap_or("The instance");
            format!("{instance} of {subject} was launched at {since} and no Node has joined; the objects do not tell why.")
        }
        Stage::Register => {
            format!("{subject} has a Node that Karpenter has not registered since {since}, and the objects do not tell why.")
        }
        Stage::Initialize => format!("{subject} has been registered but not initialized since {since}, and the objects do not tell why."),
        Stage::Ready => format!("{subject} has not been Ready since {since}, and the objects do not tell why."),
        Stage::Terminate => format!("{subject} has been terminating since {since}, and the objects do not tell why."),
    };
    let finding = Finding::new(Confidence::Possible, summary, case.wait.evidence.clone());
    let finding = match case.stage() {
        Stage::Join => ask_the_instance(case, finding),
        Stage::Launch => {
            finding.unknown("Does Karpenter run, and is it the leader?", "kubectl get pods,lease -A | grep karpenter").unknown(
                "What does Karpenter log about it?",
                format!("kubectl logs -A -l app.kubernetes.io/name=karpenter --tail=-1 | grep {}", name(case)),
            )
        }
        Stage::Register => finding
            .unknown(
                "What does Karpenter log about it?",
                format!("kubectl logs -A -l app.kubernetes.io/name=karpenter --tail=-1 | grep {}", name(case)),
            )
            .unknown(
                "Does an admission webhook refuse changes to Nodes?",
                "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o yaml",
            ),
        Stage::Initialize | Stage::Ready => {
            let finding = match case.node {
                Some(node) => finding.unknown("What do the Node and its pods say?", format!("kubectl describe node {}", node.name())),
                None => finding,
            };
            ask_the_instance(case, finding)
        }
        Stage::Terminate => finding.unknown("What blocks the drain?", format!("kubectl describe nodeclaim {}", name(case))),
    };
    finding.fix("Run the commands under \"not known\" while the machine still exists.").step(
        Risk::Inspect,
        "Keep the evidence before the machine is deleted",
        Some("nodewhy collect > nodewhy-dump.json".to_owned()),
    )
}

fn name<'c>(case: &'c Case) -> &'c str {
    case.claim.map(NodeClaim::name).or_else(|| case.node.map(Node::name)).or_else(|| case.pool.map(NodePool::name)).unwrap_or_default()
}

/// The questions that only AWS answers, with this machine's names in the commands.
pub(crate) fn ask_the_instance(case: &Case, finding: Finding) -> Finding {
    let Some(instance) = case.instance_id() else { return finding };
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    let aws = case.cluster.aws();
    // Without an interruption queue Karpenter does not hear of an instance that ends before it joins.
    let finding = match case.stage() {
        Stage::Join => or_ask(
            finding,
            aws.instance(instance),
            "Does the instance still run? One that ended at once had a volume that could not be decrypted (KMS), or another fault of EC2's.",
            format!(
                "aws ec2 describe-instances --instance-ids {instance} --query 'Reservations[].Instances[].[State.Name,StateReason.Code,SubnetId,PrivateDnsName]'"
            ),
            |is, at| {
                Some(Evidence::new(
                    format!("ec2:DescribeInstances {instance}"),
                    "State",
                    format!("{}{}", is.state, seen(at)),
                    "what EC2 says of the instance",
                ))
            },
        ),
        _ => finding,
    };
    let finding = match aws.checks(instance).known() {
        Some((checks, at)) => finding.with(Evidence::new(
            format!("ec2:DescribeInstanceStatus {instance}"),
            "SystemStatus, InstanceStatus",
            format!("{}, {}{}", checks.system, checks.instance, seen(at)),
            if checks.system == "impaired" || checks.instance == "impaired" {
                "EC2's own check fails: its hardware or its network"
            } else {
                "EC2's own checks find nothing wrong"
            },
        )),
        _ => finding,
    };
    let finding = or_ask(
        finding,
        aws.console(instance),
        "What did the instance print while it booted (nodeadm, bootstrap.sh, cloud-init)?",
        format!("aws ec2 get-console-output --latest --output text --instance-id {instance}"),
        |console, at| {
            let nothing = console.lines.is_empty() && console.bytes > 0;
            let because = "none of its lines is known to say that the bootstrap failed";
            nothing.then(|| {
                Evidence::new(format!("ec2:GetConsoleOutput {instance}"), "Output", format!("{} bytes{}", console.bytes, seen(at)), because)
            })
        },
    );
    let finding = finding
        .unknown(
            "Do network, IAM and user data of this instance fit (AWS's own runbook)?",
            format!(
                "aws ssm start-automation-execution --document-name AWSSupport-TroubleshootEKSWorkerNode --parameters ClusterName={cluster},WorkerID={instance}"
            ),
        );
    if case.stage() != Stage::Join {
        return finding;
    }
    match node_role::name(case) {
        Some(role) => or_ask(
            finding,
            aws.access_entry(cluster, role),
            format!("Is there an access entry of type EC2_LINUX (or EC2_WINDOWS) for the role {role}?"),
            format!("aws eks list-access-entries --cluster-name {cluster} --output text | grep {role}"),
            |entry, at| {
                Some(Evidence::new(
                    format!("eks:DescribeAccessEntry {cluster} {}", entry.principal_arn),
                    "type",
                    format!("{}{}", entry.type_, seen(at)),
                    "the node role has an access entry",
                ))
            },
        ),
        None => finding,
    }
}
