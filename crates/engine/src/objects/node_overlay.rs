//! karpenter.sh/v1alpha1 NodeOverlay: what Karpenter is to believe of instance types.

use super::{Meta, Pairs, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeOverlay {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeOverlaySpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeOverlaySpec {
    /// Resources that instance types have beside what EC2 tells of them.
    #[serde(deserialize_with = "nullable")]
    pub capacity: Pairs,
}
