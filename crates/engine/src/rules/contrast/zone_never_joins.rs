//! Nodes in one zone never join, while nodes in other zones do: the subnet has no route to the cluster.

use crate::explain::contrast;
use crate::rules::prelude::*;

rule! {
    cause: ZoneNeverJoins,
    summary: "Nodes in one zone never join while nodes in other zones do: its subnet has no route to the cluster",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, AwsAuth, Deployments, AwsObservations],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (class, _) = (case.class()?, case.claim?);
    let (split, confidence) = contrast::suspicion(case, "zone", &[])?;
    let zone = split.value;
    let subnets: Vec<&str> = class.status.subnets.iter().filter(|s| s.zone == zone).map(|s| s.id.as_str()).collect();
    let where_ =
        if subnets.is_empty() { "the subnet there".to_owned() } else { format!("subnet {}", subnets.join(", ")) };
    let summary = format!(
        "No node of {} {} in zone {zone} has joined, while all in other zones have. Most likely {where_} has no route \
         to the cluster (NAT gateway, VPC endpoints, public IP).",
        class.kind,
        class.name()
    );
    let mut finding = contrast::finding(case, &split, confidence, summary)
        .blaming(Blame::class(class).field("spec.subnetSelectorTerms"))
        .fix(
            "Give the subnet the same network ACL and route as the others. A private subnet needs a NAT gateway or VPC \
             endpoints, a public one auto-assigned public IPs. Or select only the subnets that work.",
        );
    if !subnets.is_empty() {
        finding = finding.with(Evidence::new(
            format!("{}/{}", class.kind, class.name()),
            "status.subnets",
            subnets.join(", "),
            format!("the subnets in {zone}"),
        ));
    }
    let ids = if subnets.is_empty() {
        format!("Name=availability-zone,Values={zone}")
    } else {
        format!("Name=association.subnet-id,Values={}", subnets.join(","))
    };
    let (verb, filter) = if subnets.is_empty() { ("describe-subnets", ids) } else { ("describe-route-tables", ids) };
    finding
        .ask_aws(
            "Does the subnet have the same default route, endpoints and public IPs as the others?",
            format!("aws ec2 {verb} --filters {filter}"),
        )
        .change(
            "Exclude the subnet until nodes in it join",
            format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name()),
        )
        .into()
}
