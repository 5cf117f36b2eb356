//! AWS denies the VPC CNI the EC2 calls that it needs.

use crate::cluster_state::memo::Memo;
use crate::explain::logged;
use crate::facts::cni_permissions::denied;
use crate::facts::pod_addresses::is_refusing;
use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::credentials::Credentials;
use crate::upstream::vpc_cni;

rule! {
    cause: CniLacksPermissions,
    summary: "The VPC CNI is not allowed to call EC2: the role that aws-node runs with lacks AmazonEKS_CNI_Policy",
    stages: [Initialize, Ready],
    reads: [Nodes, NodePools, NodeClasses, Events, Pods, Logs],
    versions: "VPC CNI 1.11 and later write the event; older ones only log it",
}

/// `ec2:DescribeNetworkInterfaces`, if the message names the call.
fn call(message: &str) -> &str {
    message.split_whitespace().find(|word| word.starts_with("ec2:")).unwrap_or("EC2")
}

fn check(case: &Case) -> Option<Opinion> {
    let node = case.node?;
    let pod = case.pods().find(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE))?;
    // A Ready Node may still lack the right to add addresses; then its pods are refused.
    if vpc_cni::not_ready(node).is_none() && !(node.is_ready() && is_refusing(case, node)) {
        return None;
    }
    let event = denied(case, pod)?;
    let (whose, blame, fix) = owner(case, pod);
    let confidence = if case.is_overdue() { Confidence::Certain } else { Confidence::Likely };
    let effect = if node.is_ready() { "gives its pods no addresses" } else { "has no network and stays NotReady" };
    Finding::new(
        confidence,
        format!(
            "Node {} {effect}: its VPC CNI is not allowed to call {}, because {whose} does not permit it.",
            node.name(),
            call(&event.message)
        ),
        Evidence::new(
            format!("Event/{}", event.metadata.name),
            "message",
            event.said(),
            "aws-node itself reports the denied call",
        ),
    )
    .blaming(blame)
    .fix(fix)
    .inspect("See which role aws-node uses", "kubectl get serviceaccount -n kube-system aws-node -o yaml".to_owned())
    .inspect("See the node's role and the state of the Node", format!("kubectl describe node {}", node.name()))
    .into()
}

/// The role that an older pod of aws-node runs with, and that pod. A pod gets its role at its creation, and keeps it.
/// Source: aws/amazon-eks-pod-identity-webhook pkg/handler/handler.go (AWS_ROLE_ARN).
fn lost_role<'c>(case: &Case<'c>, pod: &Pod) -> Option<(&'c str, &'c str)> {
    static OLDER: Memo<Option<String>> = Memo::new("an older pod of aws-node that runs with a role of its own");
    let older = case.cluster.once(&OLDER, &pod.metadata.name, || {
        let of_set = case.cluster.pods_in("kube-system").filter(|p| p.daemon_set() == Some(vpc_cni::AWS_NODE));
        let older = of_set.filter(|p| p.metadata.creation_timestamp < pod.metadata.creation_timestamp);
        let with_role = older.filter(|p| matches!(Credentials::of(p), Credentials::Irsa(_)));
        with_role.max_by_key(|p| p.metadata.creation_timestamp).map(|p| p.metadata.name.to_string())
    });
    let older = case.cluster.pods_named("kube-system", older.as_deref()?).next()?;
    let Credentials::Irsa(role) = Credentials::of(older) else { return None };
    Some((role, &older.metadata.name))
}

/// The role that lacks the permission, the object that names it, and the fix.
fn owner(case: &Case, pod: &Pod) -> (String, Blame, String) {
    const POLICY: &str = "AmazonEKS_CNI_Policy (with IPv6 a policy of your own with ec2:AssignIpv6Addresses)";
    let account = || Blame::object("v1", "ServiceAccount", "aws-node").namespace("kube-system");
    match Credentials::of(pod) {
        Credentials::Irsa(role) => (
            format!("the role {role} of its ServiceAccount"),
            account().field("metadata.annotations['eks.amazonaws.com/role-arn']"),
            format!(
                "Attach {POLICY} to the role {role}, and check that its trust policy names the ServiceAccount \
                 kube-system/aws-node."
            ),
        ),
        Credentials::PodIdentity => (
            "the role of its Pod Identity association".to_owned(),
            account(),
            format!("Attach {POLICY} to the role of the Pod Identity association of kube-system/aws-node."),
        ),
        Credentials::Node => {
            if let Some((role, older)) = lost_role(case, pod) {
                return (
                    format!(
                        "the node role: ServiceAccount aws-node lost its role {role}, which pod {older} still has,"
                    ),
                    account().field("metadata.annotations['eks.amazonaws.com/role-arn']"),
                    format!(
                        "Give ServiceAccount kube-system/aws-node the annotation eks.amazonaws.com/role-arn: {role} \
                         again, in whatever applies its manifest (eksctl, Helm, the EKS add-on). Then restart aws-node \
                         on the nodes that were launched since. This leaves running pods alone."
                    ),
                );
            }
            // The cluster may not show with which role a pod runs that a webhook gave one; the denial does.
            let told = logged::denied_role(case, "vpc-cni");
            if let Some(role) = told.filter(|role| case.class().is_none_or(|c| c.spec.role.as_deref() != Some(*role))) {
                return (
                    format!("the role {role}, which the denial names,"),
                    Blame::object("", "IAMRole", role),
                    format!("Attach {POLICY} to the role {role}."),
                );
            }
            let class =
                case.class().and_then(|c| Some((c, c.spec.role.as_deref().or(c.spec.instance_profile.as_deref())?)));
            match class {
                Some((class, role)) => (
                    format!("the node role {role}"),
                    Blame::class(class).field(if class.spec.role.is_some() {
                        "spec.role"
                    } else {
                        "spec.instanceProfile"
                    }),
                    format!(
                        "Attach {POLICY} to {role}, or give the ServiceAccount kube-system/aws-node a role of its own \
                         that has it."
                    ),
                ),
                None => (
                    "the node role".to_owned(),
                    case.class_field("spec.role").unwrap_or_else(account),
                    format!(
                        "Attach {POLICY} to the node role, or give the ServiceAccount kube-system/aws-node a role of \
                         its own that has it."
                    ),
                ),
            }
        }
    }
}
