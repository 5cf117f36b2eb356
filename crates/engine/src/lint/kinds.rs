//! API groups that do not have the kind, and fields that the kind does not have in v1.

use super::flaw::Flaw;
use crate::objects::NodePool;
use readers::userdata::has_expansion;

/// The group of Karpenter's own kinds.
fn group_of(kind: &str) -> &'static str {
    if kind == "NodePool" { "karpenter.sh" } else { "karpenter.k8s.aws" }
}

/// An object of a group that does not have its kind.
pub fn group(kind: &str, name: &str, api_version: &str) -> Option<Flaw> {
    let (group, _) = api_version.split_once('/')?;
    let own = group_of(kind);
    (group != own && !has_expansion(group)).then(|| Flaw {
        cause: "WrongApiGroup",
        message: format!(
            "{kind} {name} has the apiVersion {api_version}, but {group} has no kind {kind}. The API server rejects it."
        ),
        fix: format!("Write apiVersion: {own}/v1."),
        field: "apiVersion".to_owned(),
        fatal: true,
    })
}

/// A reference to a kind that the group of Karpenter's classes does not have.
// karpenter v1.14.1 pkg/utils/nodepool/nodepool.go IsManaged: such a NodePool is ignored
pub fn foreign_kind(pool: &NodePool) -> Option<Flaw> {
    let reference = &pool.spec.template.spec.node_class_ref;
    let kind = reference.kind.as_str();
    let is_foreign = reference.group == "karpenter.k8s.aws" && kind != "EC2NodeClass";
    (is_foreign && !kind.is_empty() && !has_expansion(kind)).then(|| Flaw {
        cause: "ForeignNodeClassRef",
        message: format!(
            "NodePool {} names a {kind} of the group karpenter.k8s.aws, which has no such kind. Karpenter ignores the \
             NodePool.",
            pool.name()
        ),
        fix: "Write kind: EC2NodeClass.".to_owned(),
        field: "spec.template.spec.nodeClassRef.kind".to_owned(),
        fatal: true,
    })
}

/// Fields of v1beta1 in a NodePool of v1.
// karpenter v1.0.0 pkg/apis/crds/karpenter.sh_nodepools.yaml: nodeClassRef requires group, kind and name
pub fn fields(pool: &NodePool, has: &dyn Fn(&str) -> bool) -> Vec<Flaw> {
    if pool.api_version != "karpenter.sh/v1" {
        return Vec::new();
    }
    let flaw = |field: &str, message: String, fix: &str| Flaw {
        cause: "FieldOfV1beta1",
        message,
        fix: fix.to_owned(),
        field: field.to_owned(),
        fatal: false,
    };
    let (name, reference) = (pool.name(), "spec.template.spec.nodeClassRef");
    let mut flaws = Vec::new();
    if has("spec.template.spec.kubelet") {
        flaws.push(flaw(
            "spec.template.spec.kubelet",
            format!("NodePool {name} has spec.template.spec.kubelet, which v1 does not have. The API server drops it."),
            "Move it to spec.kubelet of the EC2NodeClass.",
        ));
    }
    if has(reference) && !has(&format!("{reference}.group")) {
        flaws.push(flaw(
            reference,
            format!("NodePool {name} names its class without a group, which v1 requires. The API server rejects it."),
            "Write group: karpenter.k8s.aws, kind: EC2NodeClass and the name.",
        ));
    }
    flaws
}
