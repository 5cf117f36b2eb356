//! A node class whose instances have room for no pod.

use super::flaw::Flaw;
use crate::objects::NodeClass;
use serde_json::Value;

/// `maxPods: 0`, or `podsPerCore: 0` beside it: the API takes it, and then no instance type fits.
// karpenter-provider-aws v1.14.1 pkg/providers/instancetype/types.go pods
pub fn flaw(class: &NodeClass) -> Option<Flaw> {
    let is_zero = class.spec.kubelet.get("maxPods").and_then(Value::as_u64) == Some(0);
    is_zero.then(|| Flaw {
        cause: "NoRoomForPods",
        message: format!(
            "EC2NodeClass {} has maxPods 0. Every instance type then has room for no pod, so Karpenter launches \
             nothing.",
            class.name()
        ),
        fix: "Write how many pods an instance may have, or remove maxPods.".to_owned(),
        field: "spec.kubelet.maxPods".to_owned(),
        fatal: true,
    })
}
