//! No node of this node class has joined, and the class lacks a security group that all classes with working nodes
//! have.

use crate::cluster_state::memo::Memo;
use crate::explain::instance_questions::ask_the_instance;
use crate::objects::{Node, NodeClaim, NodeClass, SecurityGroup};
use crate::rules::prelude::*;
use std::collections::BTreeSet;

rule! {
    cause: SecurityGroupsDiffer,
    summary: "No node of this class joins, and it lacks a security group that classes with working nodes have",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Deployments, AwsObservations],
    versions: "all",
}

fn check(case: &Case) -> Option<Opinion> {
    let class = case.class()?;
    let own: BTreeSet<&SecurityGroup> = class.status.security_groups.iter().collect();
    if own.is_empty() || case.class_members().is_none_or(|p| !p.joined().is_empty()) {
        return None;
    }
    // The API server may reject nodes with another role for that reason.
    let same_identity =
        |c: &NodeClass| (&c.spec.role, &c.spec.instance_profile) == (&class.spec.role, &class.spec.instance_profile);
    let joining: Vec<&NodeClass> = case
        .cluster
        .classes()
        .map(|facts| &facts.class)
        .filter(|c| {
            c.kind == class.kind && c.name() != class.name() && !c.status.security_groups.is_empty() && same_identity(c)
        })
        .filter(|c| (same_boot(c, class) || same_subnet(c, class)) && joins(case, c))
        .collect();
    let [first, ..] = joining.as_slice() else { return None };
    let missing: Vec<&SecurityGroup> = first
        .status
        .security_groups
        .iter()
        .filter(|group| !has(class, group) && joining.iter().all(|c| has(c, group)))
        .collect();
    let Some(group) = missing.iter().find(|g| is_clusters(g)).or(missing.first()) else {
        let like = joining.iter().find(|c| c.status.security_groups.iter().all(|group| has(class, group)))?;
        let (own, like_name) = (class.name(), like.name());
        let because = format!("{} {own} has the security groups of {like_name}, whose nodes join", class.kind);
        return Some(Opinion::ruled_out(*like, because));
    };
    // If nothing else differs that a kubelet depends on.
    let alike = joining.iter().any(|c| same_boot(c, class) && same_subnet(c, class));
    let confidence = if alike { Confidence::Likely } else { Confidence::Possible };
    let shown = |g: &SecurityGroup| if g.name.is_empty() { g.id.clone() } else { format!("{} ({})", g.id, g.name) };
    let name = class.name();
    let kind = if is_clusters(group) { "the cluster's own security group" } else { "the security group" };
    let object = format!("{}/{name}", class.kind);
    let held = own.iter().map(|g| shown(g)).collect::<Vec<_>>().join(", ");
    let finding = Finding::new(
        confidence,
        format!(
            "No node of {} {name} has joined. It lacks {kind} {2}, which classes with working nodes have ({1}), so its \
             kubelets perhaps cannot reach the API server.",
            class.kind,
            joining.iter().map(|c| c.name()).collect::<Vec<_>>().join(", "),
            shown(group)
        ),
        Evidence::new(object, "status.securityGroups", held, format!("{} is not among them", shown(group))),
    )
    .with(Evidence::new(
        format!("{}/{}", first.kind, first.name()),
        "status.securityGroups",
        shown(group),
        "nodes of this class join",
    ))
    .blaming(Blame::class(class).field("spec.securityGroupSelectorTerms"))
    .fix(
        "Select the cluster's security group. Or open 443 to the control plane and 10250 from it in the selected \
         group, and let the control plane's group admit it too.",
    )
    .inspect(
        "Compare the rules of the groups",
        format!(
            "aws ec2 describe-security-group-rules --filters Name=group-id,Values={},{}",
            own.iter().map(|g| g.id.as_str()).collect::<Vec<_>>().join(","),
            group.id
        ),
    )
    .change("Select the group", format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase()));
    ask_the_instance(case, finding).into()
}

fn has(class: &NodeClass, group: &SecurityGroup) -> bool {
    class.status.security_groups.iter().any(|g| g.id == group.id)
}

fn same_boot(a: &NodeClass, b: &NodeClass) -> bool {
    (a.spec.user_data.as_deref(), a.family_name()) == (b.spec.user_data.as_deref(), b.family_name())
}

fn same_subnet(a: &NodeClass, b: &NodeClass) -> bool {
    a.status.subnets.iter().any(|s| b.status.subnets.iter().any(|other| other.id == s.id))
}

/// EKS names the group that it creates for a cluster `eks-cluster-sg-NAME-NUMBER`.
fn is_clusters(group: &SecurityGroup) -> bool {
    group.name.starts_with("eks-cluster-sg-")
}

fn joins(case: &Case, class: &NodeClass) -> bool {
    static JOINS: Memo<bool> = Memo::new("whether a node of the class is Ready");
    let cluster = case.cluster;
    let is_ready = |c: &NodeClaim| cluster.nodes_with_provider_id(&c.status.provider_id).any(Node::is_ready);
    *cluster.once(&JOINS, &format!("{}/{}", class.kind, class.name()), || {
        cluster.joined_of_class(&class.kind, class.name()).any(is_ready)
    })
}
