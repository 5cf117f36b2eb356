//! crd.k8s.amazonaws.com/v1alpha1 ENIConfig: which subnet the VPC CNI takes the addresses of pods from.

use super::Meta;
use serde::{Deserialize, Serialize};

/// Only its name matters: a Node's label or annotation names it.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct EniConfig {
    pub metadata: Meta,
}
