//! Two of the selected security groups have one name, so one of them belongs to another VPC.

use crate::explain::commands;
use crate::explain::launch_error;
use crate::objects::{NodeClass, SecurityGroup};
use crate::rules::prelude::*;

rule! {
    cause: SecurityGroupsOfTwoVpcs,
    summary: "The selected security groups belong to two VPCs: two of them have one name",
    stages: [Launch],
    reads: [NodeClaims, NodeClasses],
    versions: "all; the condition contains EC2's error if Karpenter has a reason for it",
}

fn check(case: &Case) -> Option<Opinion> {
    let (claim, class) = (case.claim?, case.class()?);
    let launched = claim.condition("Launched").filter(|c| c.reason == "LaunchFailed")?;
    // If Karpenter passes EC2's message on, that is the better sentence.
    if launch_error::named(&launched.message).is_some() {
        return None;
    }
    let (one, other) = namesakes(class)?;
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} was launched with the same security groups", sibling.name()),
        ));
    }
    let (name, group) = (class.name(), &one.name);
    let by_name = class.spec.security_group_selector_terms.iter().position(|t| t.name.as_deref() == Some(group));
    let field = by_name.map_or_else(
        || "spec.securityGroupSelectorTerms".to_owned(),
        |at| format!("spec.securityGroupSelectorTerms.{at}.name"),
    );
    Finding::new(
        Confidence::Likely,
        format!(
            "{} {name} selects two security groups with the name {group}, {} and {}. A name is unique in a VPC, so one \
             group belongs to another VPC than the subnets, and EC2 launches nothing.",
            class.kind, one.id, other.id
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            "status.securityGroups",
            format!("{} and {}, both {group}", one.id, other.id),
            "names of security groups are unique within a VPC",
        ),
    )
    .with(Evidence::new(
        case.subject(),
        r#"status.conditions[?(@.type=="Launched")]"#,
        launched.shown(),
        "EC2's own words are only in Karpenter's log",
    ))
    .blaming(Blame::class(class).field(field))
    .fix("Select the security groups by id, or by a tag that only the groups of the cluster's VPC have.")
    .inspect(
        "See their VPCs",
        format!(
            "aws ec2 describe-security-groups --group-ids {} {} --query 'SecurityGroups[].[GroupId,GroupName,VpcId]'",
            one.id, other.id
        ),
    )
    .change("Select only the right one", commands::edit(class))
    .into()
}

/// The first two groups with the same name.
fn namesakes(class: &NodeClass) -> Option<(&SecurityGroup, &SecurityGroup)> {
    let groups = &class.status.security_groups;
    groups.iter().enumerate().find_map(|(at, one)| {
        let same = |other: &&SecurityGroup| !one.name.is_empty() && one.name == other.name && one.id != other.id;
        Some((one, groups.get(at + 1..)?.iter().find(same)?))
    })
}
