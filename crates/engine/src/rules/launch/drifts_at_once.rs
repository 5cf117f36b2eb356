//! The nodes of a NodePool drift as soon as they run, so Karpenter replaces each replacement.

use crate::case::drift_at_once::{DriftAtOnce, drift_at_once};
use crate::case::{duration, timestamp};
use crate::objects::{NodeClaim, NodePool, Requirement};
use crate::rules::prelude::*;

rule! {
    cause: DriftsAtOnce,
    summary: "Nodes of the NodePool drift as soon as they run, and Karpenter replaces them again and again",
    stages: [Launch],
    reads: [NodePools, NodeClasses, NodeClaims, Events],
    versions: "Karpenter 1.0 and later",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::DriftsAtOnce {
        return None;
    }
    let pool = case.pool()?;
    let found = drift_at_once(case.cluster, pool)?;
    let DriftAtOnce { drifted, newest, after, count, replaced, since } = found;
    let reason = if drifted.reason.is_empty() { "Drifted" } else { &*drifted.reason };
    let Meant { why, field, fix } = meant(reason);
    let name = pool.name();
    let finding = Finding::new(
        Confidence::Likely,
        format!(
            "Each new node of NodePool {name} has drifted {} after its launch ({reason}: {why}), and Karpenter \
             replaces it. It has replaced {replaced} since {}, and {count} more are to follow.",
            duration(after),
            timestamp(since)
        ),
        Evidence::new(
            format!("NodeClaim/{}", newest.name()),
            r#"status.conditions[?(@.type=="Drifted")]"#,
            drifted.shown(),
            "Karpenter launched it from the current NodePool and node class, and neither has changed since",
        ),
    )
    .fix(fix)
    .inspect("See when each was created, and what Karpenter reports about it", format!("kubectl get nodeclaims -l karpenter.sh/nodepool={name} -o custom-columns='NAME:.metadata.name,MADE:.metadata.creationTimestamp,DRIFTED:.status.conditions[?(@.type==\"Drifted\")].reason'"))
    .change("Stop the replacements until you have fixed it", format!(
            r#"kubectl patch nodepool {name} --type=merge -p '{{"spec":{{"disruption":{{"budgets":[{{"nodes":"0","reasons":["Drifted"]}}]}}}}}}'"#
        ));
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
    if reason == "RequirementsDrifted"
        && let Some(unmet) = unmet(pool, newest)
    {
        let of_pool = Blame::object("karpenter.sh/v1", "NodePool", name).field("spec.template.spec.requirements");
        return finding.with(label_beside(pool, newest, unmet)).blaming(of_pool).into();
    }
    let of_pool = || Blame::object("karpenter.sh/v1", "NodePool", name);
    let blame = field.and_then(|field| case.class_field(field));
    finding.blaming(blame.unwrap_or_else(of_pool)).into()
}

/// The requirement of the NodePool that the labels of a NodeClaim do not meet. A label that is missing meets none.
/// Source: core v1.0.5 and v1.14.1 pkg/controllers/nodeclaim/disruption/drift.go `areRequirementsDrifted`.
fn unmet<'w>(pool: &'w NodePool, claim: &NodeClaim) -> Option<&'w Requirement> {
    let is_met = |r: &Requirement| match claim.metadata.label(&r.key) {
        Some(value) => r.admits(value),
        None => matches!(r.operator.as_str(), "NotIn" | "DoesNotExist"),
    };
    pool.spec.template.spec.requirements.iter().find(|r| !is_met(r))
}

fn label_beside(pool: &NodePool, claim: &NodeClaim, unmet: &Requirement) -> Evidence {
    let has = match claim.metadata.label(&unmet.key) {
        Some(value) => format!("has the label {}={value}", unmet.key),
        None => format!("has no label {}", unmet.key),
    };
    Evidence::new(
        format!("NodePool/{}", pool.name()),
        "spec.template.spec.requirements",
        unmet.shown(),
        format!("NodeClaim {} {has}, and Karpenter compares the requirements with its labels only", claim.name()),
    )
}

struct Meant {
    why: &'static str,
    /// The field of the node class.
    field: Option<&'static str>,
    fix: &'static str,
}

/// Sources: karpenter-provider-aws v1.14.1 pkg/cloudprovider/drift.go `isNodeClassDrifted`; core v1.14.1
/// pkg/controllers/nodeclaim/disruption/drift.go `isDrifted`.
fn meant(reason: &str) -> Meant {
    match reason {
        "SecurityGroupDrift" => Meant {
            why: "its instance has other security groups than the node class selects, so something adds or removes one \
                  after the launch",
            field: Some("spec.securityGroupSelectorTerms"),
            fix: "Find out what changes the security groups of instances (AWS Firewall Manager, a policy of your \
                  organization, another controller), and exclude Karpenter's nodes from it. Or select the same groups \
                  in spec.securityGroupSelectorTerms.",
        },
        "SubnetDrift" => Meant {
            why: "its instance is in a subnet that the node class does not select",
            field: Some("spec.subnetSelectorTerms"),
            fix: "Find out what changes the tags of the subnets back and forth, or why the selector and the launch \
                  disagree.",
        },
        "AMIDrift" => Meant {
            why: "its instance runs another image than the node class resolves to",
            field: Some("spec.amiSelectorTerms"),
            fix: "Pin one image in spec.amiSelectorTerms: either the selected image changes by itself, or two tools \
                  overwrite the node class in turn.",
        },
        "CapacityReservationDrift" => Meant {
            why: "its instance runs in a capacity reservation other than the node class selects",
            field: None,
            fix: "If Karpenter's gate ReservedCapacity is off, upgrade Karpenter: 1.3.1 reported drift for instances \
                  that EC2 put into an open reservation by itself (aws/karpenter-provider-aws#7866). Otherwise select \
                  the reservation that the instances run in.",
        },
        "RequirementsDrifted" => Meant {
            why: "its labels do not meet a requirement of the NodePool, whatever its instance type is",
            field: None,
            fix: "Find out what removes or changes this label of NodeClaims (a webhook, another controller). Or \
                  replace the requirement with one on a label that every NodeClaim has, such as \
                  karpenter.k8s.aws/instance-family.",
        },
        "InstanceTypeNotFound" => Meant {
            why: "Karpenter does not know its instance type any more",
            field: None,
            fix: "Exclude the instance type in the NodePool's requirements, or upgrade Karpenter to a version that \
                  knows it.",
        },
        _ => Meant {
            why: "it differs from what its NodePool or node class specifies",
            field: None,
            fix: "Find out what changes the node, its NodePool or its node class after Karpenter. It may be a webhook \
                  that changes NodeClaims or Nodes, or GitOps and a person may overwrite each other.",
        },
    }
}
