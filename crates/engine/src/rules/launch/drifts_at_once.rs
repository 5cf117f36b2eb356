//! The machines of a NodePool drift as soon as they run, so that Karpenter replaces each replacement.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::drift_at_once::{DriftAtOnce, drift_at_once};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::{duration, timestamp};
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "DriftsAtOnce",
    summary: "Machines of the NodePool drift as soon as they run, and Karpenter replaces them again and again",
    stages: &[Stage::Launch],
    reads: &[Input::NodePools, Input::NodeClasses, Input::NodeClaims, Input::Events],
    lint: false,
    versions: "Karpenter 1.0 and later",
    page: include_str!("../../../pages/DriftsAtOnce.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    if case.wait.symptom != Symptom::DriftsAtOnce {
        return Opinion::Silent;
    }
    let Some(pool) = case.pool() else { return Opinion::Silent };
    let Some(found) = drift_at_once(case.cluster, pool) else { return Opinion::Silent };
    let DriftAtOnce { drifted, newest, after, count, replaced, since } = found;
    let reason = if drifted.reason.is_empty() { "Drifted" } else { &*drifted.reason };
    let Meant { why, field, fix } = meant(reason);
    let name = pool.name();
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "Each new machine of NodePool {name} has drifted {} after its launch ({reason}: {why}), and Karpenter replaces it: {replaced} since {}, and {count} more are to follow.",
            duration(after),
            timestamp(since)
        ),
        Evidence::new(
            format!("NodeClaim/{}", newest.name()),
            r#"status.conditions[?(@.type=="Drifted")]"#,
            drifted.shown(),
            "it was made of what NodePool and node class ask for now, and neither has changed since",
        ),
    )
    .fix(fix)
    .step(
        Risk::Inspect,
        "See when each was made, and what Karpenter says of it",
        Some(format!("kubectl get nodeclaims -l karpenter.sh/nodepool={name} -o custom-columns='NAME:.metadata.name,MADE:.metadata.creationTimestamp,DRIFTED:.status.conditions[?(@.type==\"Drifted\")].reason'")),
    )
    .step(
        Risk::Mutating,
        "Stop the replacing until it is mended",
        Some(format!(
            r#"kubectl patch nodepool {name} --type=merge -p '{{"spec":{{"disruption":{{"budgets":[{{"nodes":"0","reasons":["Drifted"]}}]}}}}}}'"#
        )),
    );
    let id = newest.instance_id().unwrap_or("INSTANCE");
    let finding = match reason {
        "SecurityGroupDrift" => finding.ask_aws(
            "Which security groups does it have now, and which of them does the node class not select?",
            format!(
                "aws ec2 describe-instances --instance-ids {id} --query 'Reservations[].Instances[].SecurityGroups'"
            ),
        ),
        _ => finding,
    };
    let of_pool = || Blame::object("karpenter.sh/v1", "NodePool", name);
    let blame = field.and_then(|field| case.class_field(field));
    finding.blaming(blame.unwrap_or_else(of_pool)).into()
}

struct Meant {
    why: &'static str,
    /// Of the node class.
    field: Option<&'static str>,
    fix: &'static str,
}

/// Sources: karpenter-provider-aws v1.14.1 pkg/cloudprovider/drift.go `isNodeClassDrifted`; core v1.14.1
/// pkg/controllers/nodeclaim/disruption/drift.go `isDrifted`.
fn meant(reason: &str) -> Meant {
    match reason {
        "SecurityGroupDrift" => Meant {
            why: "its instance has other security groups than the node class selects, so something adds or takes one after the launch",
            field: Some("spec.securityGroupSelectorTerms"),
            fix: "Find who changes the security groups of instances (AWS Firewall Manager, a policy of the organization, another controller), and leave Karpenter's machines out of it, or select the same groups in spec.securityGroupSelectorTerms.",
        },
        "SubnetDrift" => Meant {
            why: "its instance is in a subnet that the node class does not select",
            field: Some("spec.subnetSelectorTerms"),
            fix: "Find who changes the tags of the subnets by turns, or what else the selector and the launch disagree about.",
        },
        "AMIDrift" => Meant {
            why: "its instance runs another image than the node class resolves to",
            field: Some("spec.amiSelectorTerms"),
            fix: "Pin one image in spec.amiSelectorTerms: what is selected changes by itself, or two things write the node class by turns.",
        },
        "CapacityReservationDrift" => Meant {
            why: "its instance runs in a capacity reservation other than the node class selects",
            field: None,
            fix: "Upgrade Karpenter where its gate ReservedCapacity is off: 1.3.1 took instances that EC2 put into an open reservation by itself for drifted (aws/karpenter-provider-aws#7866). Else select the reservation that the instances run in.",
        },
        "InstanceTypeNotFound" => Meant {
            why: "Karpenter does not know its instance type any more",
            field: None,
            fix: "Leave the instance type out of the NodePool's requirements, or upgrade Karpenter to a version that knows it.",
        },
        _ => Meant {
            why: "it is not as its NodePool or node class asks for",
            field: None,
            fix: "Find who writes the machine, its NodePool or its node class after Karpenter: a webhook that changes NodeClaims or Nodes, or GitOps and a person by turns.",
        },
    }
}
