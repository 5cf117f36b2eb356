//! Two security groups of the node have the cluster's tag, but the load balancer controller needs exactly one, as the
//! nodes of another node class have.

use crate::case::tagged_twice::tagged_twice;
use crate::rules::prelude::*;

rule! {
    cause: ClusterTagOnTwoGroups,
    summary: "Load balancers do not reach the node because two of its security groups have the cluster's tag",
    stages: [Ready],
    reads: [NodeClaims, NodeClasses, Events],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let (Some(node), Symptom::TaggedTwice) = (case.node, case.wait.symptom) else { return None };
    let found = tagged_twice(case.cluster, node, case.now)?;
    let (name, class) = (node.name(), found.class);
    let about = &found.event.involved_object;
    let field = "spec.securityGroupSelectorTerms";
    let object = format!("{}/{}", class.kind, class.name());
    let groups = found.groups.join(" and ");
    let ids = found.groups.join(" ");
    Finding::new(
        Confidence::Certain,
        format!(
            "Node {name} is Ready but gets no traffic from load balancers: its security groups {groups}, which {} {} \
             selects, both have the tag kubernetes.io/cluster/…. The controller of {} {} needs exactly one such group \
             to open it for the load balancer's target group.",
            class.kind,
            class.name(),
            about.kind,
            about.name,
        ),
        Evidence::new(object.clone(), "status.securityGroups", groups.clone(), "the controller names both groups"),
    )
    .with(case.wait.evidence.clone())
    .linked([
        Link::new(object, format!("it selects {groups}")),
        Link::new(
            format!("{}/{}", about.kind, about.name),
            "its controller finds two groups with the cluster's tag and opens neither",
        ),
    ])
    .blaming(Blame::class(class).field(field))
    .fix(
        "Select only one of the groups, by a tag of your own (karpenter.sh/discovery). Karpenter then replaces the \
         nodes of the class. Or remove the tag kubernetes.io/cluster/… from the group that should stay closed, which \
         disrupts nothing. The group that EKS creates for the cluster always has the tag.",
    )
    .inspect(
        "See which group has the tag",
        format!(
            "aws ec2 describe-security-groups --group-ids {ids} --query 'SecurityGroups[].[GroupId,GroupName,Tags]'"
        ),
    )
    .into()
}
