//! `spec.kubelet` of a node class.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use readers::userdata::{Family, class_refusals};

/// Values that the API server, Karpenter or the kubelet refuses.
pub fn flaws(class: &NodeClass) -> Vec<Flaw> {
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
    told.collect()
}
