//! `spec.kubelet` of a node class.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use crate::upstream::karpenter::Version;
use readers::userdata::{Family, OWNED_BY_KARPENTER, class_refusals};

/// The first version that accepts any field in `spec.kubelet`, and refuses the one that Karpenter sets itself.
const OPEN_MAP_SINCE: Version = Version(1, 15, 0);

/// Values that the API server, Karpenter or the kubelet refuses. `karpenter` is the version, if it is known.
pub fn flaws(class: &NodeClass, karpenter: Option<Version>) -> Vec<Flaw> {
    let no_family_kubelet = class.family() == Some(Family::Custom);
    let refused = class_refusals(&class.spec.kubelet);
    let told = refused.into_iter().map(|(path, why)| Flaw {
        cause: "InvalidKubeletField",
        message: format!(
            "EC2NodeClass {} has a value in spec.kubelet that Karpenter or the kubelet refuses: {path} {why}.",
            class.name()
        ),
        fix: "Write the value that the message names.".into(),
        field: format!("spec.kubelet.{path}"),
        fatal: !no_family_kubelet,
    });
    told.chain(own_taints(class, karpenter)).collect()
}

/// Taints in `spec.kubelet`. Karpenter 1.15 refuses such a class of any family, Custom included. Earlier schemas lack
/// the field, so the API server drops it.
// karpenter-provider-aws v1.15.0 pkg/apis/v1/kubeletconfiguration_validation.go validateKubeletSemantics,
// pkg/controllers/nodeclass/validation.go Reconcile; v1.14.1 pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml
fn own_taints(class: &NodeClass, karpenter: Option<Version>) -> Option<Flaw> {
    class.spec.kubelet.get(OWNED_BY_KARPENTER).filter(|taints| !taints.is_null())?;
    let older = karpenter.filter(|version| *version < OPEN_MAP_SINCE);
    let outcome = older.map_or_else(
        || "Since 1.15, Karpenter refuses such a class and launches nothing from it".to_owned(),
        |version| format!("The schema of Karpenter {version} does not have the field, so it has no effect"),
    );
    Some(Flaw {
        cause: "InvalidKubeletField",
        message: format!(
            "EC2NodeClass {} has {OWNED_BY_KARPENTER} in spec.kubelet. Karpenter sets this field from the taints of \
             the NodePool. {outcome}.",
            class.name()
        ),
        fix: format!(
            "Remove {OWNED_BY_KARPENTER}, and write its taints into spec.template.spec.taints of the NodePool."
        ),
        field: format!("spec.kubelet.{OWNED_BY_KARPENTER}"),
        fatal: older.is_none(),
    })
}
