//! Commands and snippets that several fixes use, with the real names in them.

use crate::case::Case;
use crate::objects::{DaemonSet, NodeClass, Taint};
use serde_json::json;

/// Adds a toleration for one taint to a DaemonSet. `add` at `-` only works on a list that exists.
pub(crate) fn tolerate(set: &DaemonSet, taint: &Taint) -> String {
    let toleration = json!({"key": taint.key.as_str(), "operator": "Exists", "effect": taint.effect.as_str()});
    let list = "/spec/template/spec/tolerations";
    let patch = if set.spec.template.spec.tolerations.is_empty() {
        json!([{"op": "add", "path": list, "value": [toleration]}])
    } else {
        json!([{"op": "add", "path": format!("{list}/-"), "value": toleration}])
    };
    let namespace = set.metadata.namespace.as_deref().unwrap_or("default");
    format!("kubectl patch daemonset -n {namespace} {} --type=json -p '{patch}'", set.metadata.name)
}

/// Has new nodes of the class start with these images, and with no other. Without an alias the class must name its
/// family.
/// Source: karpenter-provider-aws v1.14.1 pkg/apis/v1/ec2nodeclass.go, "must specify amiFamily if amiSelectorTerms does
/// not contain an alias".
pub(crate) fn pin(class: &NodeClass, images: &[&str]) -> String {
    let terms: Vec<_> = images.iter().map(|image| json!({"id": image})).collect();
    let mut patch = json!({"spec": {"amiSelectorTerms": terms}});
    if let Some(family) = class.family_by_alias() {
        patch["spec"]["amiFamily"] = family.into();
    }
    format!("kubectl patch {} {} --type=merge -p '{patch}'", class.kind.to_ascii_lowercase(), class.name())
}

pub(crate) fn edit(class: &NodeClass) -> String {
    format!("kubectl edit {} {}", class.kind.to_ascii_lowercase(), class.name())
}

const CHECK_AGAIN: &str = "nodewhy.dev/check-again";

/// Changes an annotation, which is part of the key under which Karpenter remembers the result of its checks.
/// Source: karpenter-provider-aws v1.14.1 pkg/controllers/nodeclass/validation.go `cacheKey`.
pub(crate) fn recheck(class: &NodeClass) -> String {
    format!("kubectl annotate {} {} {CHECK_AGAIN}=1 --overwrite", class.kind.to_ascii_lowercase(), class.name())
}

/// `kubectl logs` has no --all-namespaces.
pub(crate) fn karpenter_log(case: &Case) -> String {
    let namespace = case
        .karpenter()
        .and_then(|k| k.deployment.split_once('/'))
        .map_or("KARPENTER_NAMESPACE", |(namespace, _)| namespace);
    format!("kubectl logs -n {namespace} -l app.kubernetes.io/name=karpenter --tail=-1")
}

/// The entry that maps the role's machines as nodes, in one line of valid YAML.
pub(crate) fn map_role(arn: &str) -> String {
    format!(
        "- {{rolearn: \"{arn}\", username: \"system:node:{{{{EC2PrivateDNSName}}}}\", groups: \
         [\"system:bootstrappers\", \"system:nodes\"]}}"
    )
}

pub(crate) const EDIT_AWS_AUTH: &str = "kubectl edit configmap -n kube-system aws-auth";

/// The role's ARN as the authenticator compares it, with the account of another ARN.
pub(crate) fn role_arn(role: &str, like: Option<&str>) -> String {
    let parts: Vec<&str> = like.into_iter().flat_map(|arn| arn.trim().split(':')).collect();
    match parts.as_slice() {
        ["arn", partition, "iam" | "sts", _, account, ..]
            if account.len() == 12 && account.bytes().all(|b| b.is_ascii_digit()) =>
        {
            format!("arn:{partition}:iam::{account}:role/{role}")
        }
        _ => format!("arn:aws:iam::ACCOUNT:role/{role}"),
    }
}
