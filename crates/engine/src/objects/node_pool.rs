//! karpenter.sh/v1 NodePool.

use super::{Condition, Meta, NodeClassRef, Pairs, Requirement, Taint, conditions, nullable};
use crate::objects::intern::Interned;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePool {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodePoolSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodePoolStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePoolSpec {
    #[serde(deserialize_with = "nullable")]
    pub template: Template,
    #[serde(deserialize_with = "nullable")]
    pub limits: Pairs,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Template {
    #[serde(deserialize_with = "nullable")]
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: TemplateSpec,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TemplateSpec {
    #[serde(deserialize_with = "nullable")]
    pub node_class_ref: NodeClassRef,
    #[serde(deserialize_with = "nullable")]
    pub requirements: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    pub startup_taints: Vec<Taint>,
    pub expire_after: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodePoolStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Vec<Condition>,
}

impl NodePool {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// The architectures that it asks for, where it names them.
    pub fn architectures(&self) -> &[Interned] {
        let named =
            self.spec.template.spec.requirements.iter().find(|r| r.key == "kubernetes.io/arch" && r.operator == "In");
        named.map(|r| &*r.values).unwrap_or_default()
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions(&self.status.conditions, type_)
    }
}
