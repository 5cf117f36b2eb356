//! The questions about an instance that the cluster does not answer.

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::facts::told_by_aws::or_ask;
use crate::facts::{access_entry, node_role};

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
            "Does the instance still run? If it ended at once, EC2 could not decrypt a volume (KMS), or had another \
             fault.",
            format!(
                "aws ec2 describe-instances --instance-ids {instance} --query \
                 'Reservations[].Instances[].[State.Name,StateReason.Code,SubnetId,PrivateDnsName]'"
            ),
            |is, at| {
                Some(
                    Evidence::new(
                        format!("ec2:DescribeInstances {instance}"),
                        "State",
                        is.state.clone(),
                        "EC2's state of the instance",
                    )
                    .told_by_aws(at),
                )
            },
        ),
        _ => finding,
    };
    let finding = match aws.checks(instance).known() {
        Some((checks, at)) => finding.with(
            Evidence::new(
                format!("ec2:DescribeInstanceStatus {instance}"),
                "SystemStatus, InstanceStatus",
                format!("{}, {}", checks.system, checks.instance),
                if checks.system == "impaired" || checks.instance == "impaired" {
                    "EC2's own check fails: its hardware or its network"
                } else {
                    "EC2's own checks find nothing wrong"
                },
            )
            .told_by_aws(at),
        ),
        _ => finding,
    };
    let finding = or_ask(
        finding,
        aws.console(instance),
        "Did the instance print an error while it booted (nodeadm, bootstrap.sh, cloud-init)?",
        format!("aws ec2 get-console-output --latest --output text --instance-id {instance}"),
        |console, at| {
            let nothing = console.journey.open().is_empty() && console.bytes > 0;
            let because = "nodewhy knows none of its lines as a reason that keeps the machine from joining";
            nothing.then(|| {
                Evidence::new(
                    format!("ec2:GetConsoleOutput {instance}"),
                    "Output",
                    format!("{} bytes", console.bytes),
                    because,
                )
                .told_by_aws(at)
            })
        },
    );
    let finding = finding.ask_aws(
        "Are network, IAM and user data of this instance correct (AWS's own runbook)?",
        format!(
            "aws ssm start-automation-execution --document-name AWSSupport-TroubleshootEKSWorkerNode --parameters \
             ClusterName={cluster},WorkerID={instance}"
        ),
    );
    if case.stage() != Stage::Join {
        return finding;
    }
    match node_role::name(case) {
        Some(role) => or_ask(
            finding,
            aws.access_entry(cluster, role),
            format!("Is there an access entry of type {} for the role {role}?", access_entry::type_for(case)),
            format!("aws eks list-access-entries --cluster-name {cluster} --output text | grep {role}"),
            |entry, at| {
                Some(
                    Evidence::new(
                        format!("eks:DescribeAccessEntry {cluster} {}", entry.principal_arn),
                        "type",
                        entry.type_.clone(),
                        "the node role has an access entry",
                    )
                    .told_by_aws(at),
                )
            },
        ),
        None => finding,
    }
}
