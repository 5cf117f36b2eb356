//! What the API server takes as an EC2NodeClass, a NodePool and a NodeOverlay: `spec` of their definitions, without
//! the descriptions.
//!
//! Source: karpenter-provider-aws v1.15.0 pkg/apis/crds. `NODEWHY_UPDATE=1 cargo xtask e2e schemas` writes the files,
//! and the test of that name compares them with the pinned version.

use kube_cel::{CompiledSchema, compile_schema};
use serde_json::Value;
use std::sync::LazyLock;

/// The version of Karpenter that the schemas are of.
pub const KARPENTER: &str = "1.15.0";

/// The schema of `spec`.
pub struct Schema {
    pub spec: Value,
    /// Its rules (`x-kubernetes-validations`).
    pub rules: CompiledSchema,
}

impl Schema {
    fn new(text: &str) -> Self {
        // A test reads both.
        let spec: Value = serde_json::from_str(text).unwrap_or_default();
        let rules = compile_schema(&spec);
        Self { spec, rules }
    }
}

static EC2_NODE_CLASS: LazyLock<Schema> = LazyLock::new(|| Schema::new(include_str!("schemas/ec2nodeclass.json")));
static NODE_POOL: LazyLock<Schema> = LazyLock::new(|| Schema::new(include_str!("schemas/nodepool.json")));
static NODE_OVERLAY: LazyLock<Schema> = LazyLock::new(|| Schema::new(include_str!("schemas/nodeoverlay.json")));

/// The schema of this kind.
pub fn find(api_version: &str, kind: &str) -> Option<&'static Schema> {
    match (api_version, kind) {
        ("karpenter.k8s.aws/v1", "EC2NodeClass") => Some(&EC2_NODE_CLASS),
        ("karpenter.sh/v1", "NodePool") => Some(&NODE_POOL),
        ("karpenter.sh/v1alpha1", "NodeOverlay") => Some(&NODE_OVERLAY),
        _ => None,
    }
}
