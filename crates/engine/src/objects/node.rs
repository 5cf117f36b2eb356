//! core/v1 Node.

use super::{Condition, Meta, Pairs, Taint, conditions, nullable};
use crate::api::NODE_CONDITION;
use crate::objects::intern::Interned;
use crate::objects::volatile::Volatile;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Node {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodeStatus,
    /// The condition that nodewhy itself writes on the Node, taken out of the conditions. No rule reads it, and its
    /// change is no news: otherwise nodewhy would judge by its own verdict.
    #[serde(skip)]
    pub own_condition: Volatile<Option<Box<Condition>>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    #[serde(rename = "providerID", deserialize_with = "nullable")]
    pub provider_id: Interned,
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    pub unschedulable: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Box<[Condition]>,
    #[serde(deserialize_with = "nullable")]
    pub addresses: Box<[Address]>,
    #[serde(deserialize_with = "nullable")]
    pub allocatable: Pairs,
    #[serde(deserialize_with = "nullable")]
    pub node_info: NodeInfo,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Address {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: Interned,
    #[serde(deserialize_with = "nullable")]
    pub address: Interned,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeInfo {
    #[serde(deserialize_with = "nullable")]
    pub kubelet_version: Interned,
    #[serde(deserialize_with = "nullable")]
    pub os_image: Interned,
    #[serde(deserialize_with = "nullable")]
    pub operating_system: Interned,
    #[serde(deserialize_with = "nullable")]
    pub kernel_version: Interned,
}

impl Node {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Sets apart what nodewhy itself has written.
    pub fn set_own_condition_apart(&mut self) {
        if self.condition(NODE_CONDITION).is_some() {
            let all = std::mem::take(&mut self.status.conditions).into_vec();
            let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|c| c.type_ == NODE_CONDITION);
            self.status.conditions = others.into();
            self.own_condition = own.into_iter().next().map(Box::new).into();
        }
    }

    /// The EC2 instance id at the end of an AWS providerID (`aws:///eu-west-1a/i-0123`).
    pub fn instance_id(&self) -> Option<&str> {
        self.spec.provider_id.rsplit('/').next().filter(|id| id.starts_with("i-"))
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions(&self.status.conditions, type_)
    }

    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(Condition::is_true)
    }

    pub fn is_windows(&self) -> bool {
        self.metadata.label("kubernetes.io/os") == Some("windows")
    }

    pub fn taint(&self, key: &str) -> Option<&Taint> {
        self.spec.taints.iter().find(|t| t.key == key)
    }

    pub fn address(&self, type_: &str) -> Option<&str> {
        self.status.addresses.iter().find(|a| a.type_ == type_).map(|a| a.address.as_str())
    }

    /// The first InternalIP, by which others reach the machine.
    pub fn internal_ip(&self) -> Option<IpAddr> {
        self.address("InternalIP")?.parse().ok()
    }
}
