//! The questions about an instance that the cluster does not answer.

use crate::api::{Evidence, Stage};
use crate::case::Case;
use crate::case::finding::Finding;
use crate::facts::told_by_aws::or_ask;
use crate::facts::{access_entry, node_role};

/// The questions that only AWS answers, with this machine's names in the commands.
pub(crate) fn ask_the_instance(case: &Case, finding: Finding) -> Finding {
    let Some(instance) = case.instance_id() else { return finding };
    let joins = case.stage() == Stage::Join;
    let mut finding = finding;
    // Without an interruption queue Karpenter does not hear of an instance that ends before it joins.
    if joins {
        finding = ask_its_state(case, instance, finding);
    }
    finding = ask_its_console(case, instance, finding.with_all(checks(case, instance)));
    let cluster = case.cluster_name().unwrap_or("CLUSTER");
    finding = finding.ask_aws(
        "Are network, IAM and user data of this instance correct (AWS's own runbook)?",
        format!(
            "aws ssm start-automation-execution --document-name AWSSupport-TroubleshootEKSWorkerNode --parameters \
             ClusterName={cluster},WorkerID={instance}"
        ),
    );
    match node_role::name(case) {
        Some(role) if joins => ask_its_access_entry(case, cluster, role, finding),
        _ => finding,
    }
}

fn ask_its_state(case: &Case, instance: &str, finding: Finding) -> Finding {
    or_ask(
        finding,
        case.cluster.aws().instance(instance),
        "Does the instance still run? If not, perhaps EC2 could not decrypt a volume (KMS).",
        format!(
            "aws ec2 describe-instances --instance-ids {instance} --query \
             'Reservations[].Instances[].[State.Name,StateReason.Code,SubnetId,PrivateDnsName]'"
        ),
        |is, at| {
            let object = format!("ec2:DescribeInstances {instance}");
            let because = "EC2's state of the instance";
            Some(Evidence::new(object, "State", is.state.clone(), because).told_by_aws(at))
        },
    )
}

/// The results of EC2's own checks, if nodewhy has asked for them.
fn checks(case: &Case, instance: &str) -> Option<Evidence> {
    let (checks, at) = case.cluster.aws().checks(instance).known()?;
    let because = if checks.system == "impaired" || checks.instance == "impaired" {
        "EC2's own check fails: its hardware or its network"
    } else {
        "EC2's own checks find nothing wrong"
    };
    let object = format!("ec2:DescribeInstanceStatus {instance}");
    let observed = format!("{}, {}", checks.system, checks.instance);
    Some(Evidence::new(object, "SystemStatus, InstanceStatus", observed, because).told_by_aws(at))
}

fn ask_its_console(case: &Case, instance: &str, finding: Finding) -> Finding {
    or_ask(
        finding,
        case.cluster.aws().console(instance),
        "Did the instance print an error while it booted (nodeadm, bootstrap.sh, cloud-init)?",
        format!("aws ec2 get-console-output --latest --output text --instance-id {instance}"),
        |console, at| {
            if !console.journey.open().is_empty() || console.bytes == 0 {
                return None;
            }
            let object = format!("ec2:GetConsoleOutput {instance}");
            let because = "nodewhy knows none of its lines as a reason that keeps the machine from joining";
            Some(Evidence::new(object, "Output", format!("{} bytes", console.bytes), because).told_by_aws(at))
        },
    )
}

fn ask_its_access_entry(case: &Case, cluster: &str, role: &str, finding: Finding) -> Finding {
    or_ask(
        finding,
        case.cluster.aws().access_entry(cluster, role),
        format!("Is there an access entry of type {} for the role {role}?", access_entry::type_for(case)),
        format!("aws eks list-access-entries --cluster-name {cluster} --output text | grep {role}"),
        |entry, at| {
            let object = format!("eks:DescribeAccessEntry {cluster} {}", entry.principal_arn);
            let because = "the node role has an access entry";
            Some(Evidence::new(object, "type", entry.type_.clone(), because).told_by_aws(at))
        },
    )
}
