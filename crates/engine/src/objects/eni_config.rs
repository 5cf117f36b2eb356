//! crd.k8s.amazonaws.com/v1alpha1 ENIConfig: which subnet the VPC CNI takes the addresses of pods from.

use super::{Meta, nullable};
use serde::{Deserialize, Serialize};

/// A Node's label or annotation names it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EniConfig {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: EniConfigSpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EniConfigSpec {
    #[serde(deserialize_with = "nullable")]
    pub subnet: String,
}
