//! Karpenter's pods run in a place where nothing gives them AWS credentials.

use crate::objects::Pod;
use crate::rules::prelude::*;
use crate::upstream::credentials::Credentials;
use crate::upstream::karpenter::is_karpenter;

/// A pod of Karpenter's on Fargate that got no role.
pub(super) struct WithoutCredentials<'w> {
    pod: &'w Pod,
    account: &'w str,
    how: &'static str,
}

/// On Fargate, only the role of a ServiceAccount's annotation gives a pod permissions: there is no instance role, and
/// no agent of EKS Pod Identity. On other Nodes, the role of the Node may be enough.
/// Source: Amazon EKS user guide, "Learn how EKS Pod Identity grants pods access to AWS services", considerations.
pub(super) fn without_credentials<'w>(case: &Case<'w>, namespace: &str) -> Option<WithoutCredentials<'w>> {
    let on_fargate = |pod: &&Pod| pod.metadata.label(FARGATE_PROFILE).is_some() && pod.trouble().is_some();
    let pod = case.cluster.pods_in(namespace).filter(|pod| is_karpenter(pod)).find(on_fargate)?;
    let account = pod.spec.service_account_name.as_str();
    let annotated = case.cluster.service_accounts().any(|own| {
        own.metadata.name == *account
            && own.metadata.namespace.as_deref() == Some(namespace)
            && own.role_arn().is_some()
    });
    let how = match Credentials::of(pod) {
        Credentials::PodIdentity => "it relies on EKS Pod Identity, which Fargate does not have",
        Credentials::Node if !annotated => {
            "its ServiceAccount names no IAM role, and EKS Pod Identity does not work on Fargate"
        }
        _ => return None,
    };
    Some(WithoutCredentials { pod, account, how })
}

/// Source: Amazon EKS user guide, "Define which Pods use AWS Fargate when launched".
const FARGATE_PROFILE: &str = "eks.amazonaws.com/fargate-profile";

impl WithoutCredentials<'_> {
    pub(super) fn onto(self, finding: Finding, namespace: &str, deployment: &str) -> Finding {
        let Self { pod, account, how } = self;
        finding
            .adding(&format!("Its pod {} runs on Fargate without AWS credentials: {how}.", pod.metadata.name))
            .with(Evidence::new(
                format!("Pod/{namespace}/{}", pod.metadata.name),
                "spec.containers[*].env",
                "neither AWS_ROLE_ARN nor another source of credentials that works on Fargate",
                "there is no instance whose role it could use",
            ))
            .blaming(Blame::object("v1", "ServiceAccount", account).namespace(namespace).field("metadata.annotations"))
            .fix(
                "Give the ServiceAccount a role with IRSA (annotation eks.amazonaws.com/role-arn, and a trust policy \
                 for the cluster's OIDC provider). Or run Karpenter on a managed node group, where EKS Pod Identity \
                 works.",
            )
            .change(
                "Name the role in the annotation of the ServiceAccount",
                format!("kubectl edit serviceaccount -n {namespace} {account}"),
            )
            .change(
                "Restart Karpenter's pods, so that they get the role. This disrupts no node",
                format!("kubectl rollout restart -n {namespace} deployment/{deployment}"),
            )
    }
}
