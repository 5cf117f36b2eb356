//! karpenter.sh/v1 NodeClaim.

use super::{Condition, Meta, Pairs, Taint, conditions, nullable};
use crate::objects::intern::Interned;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct NodeClaim {
    #[serde(rename = "apiVersion", deserialize_with = "nullable")]
    pub api_version: Interned,
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: NodeClaimSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: NodeClaimStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimSpec {
    #[serde(deserialize_with = "nullable")]
    pub node_class_ref: NodeClassRef,
    #[serde(deserialize_with = "nullable")]
    pub requirements: Vec<Requirement>,
    #[serde(deserialize_with = "nullable")]
    pub resources: Resources,
    #[serde(deserialize_with = "nullable")]
    pub taints: Vec<Taint>,
    #[serde(deserialize_with = "nullable")]
    pub startup_taints: Vec<Taint>,
    pub expire_after: Option<String>,
    pub termination_grace_period: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", from = "WrittenClassRef")]
pub struct NodeClassRef {
    pub group: Interned,
    pub kind: Interned,
    pub name: Interned,
}

/// As v1 and v1beta1 write it: the latter has an apiVersion in the group's place, and may leave out all but the name.
/// Source: core pkg/apis/v1beta1/nodeclaim.go `NodeClassReference` (v0.37.0), conversion in
/// pkg/apis/v1beta1/nodeclaim_conversion.go (v1.0.0).
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WrittenClassRef {
    #[serde(deserialize_with = "nullable")]
    group: Interned,
    #[serde(deserialize_with = "nullable")]
    api_version: String,
    #[serde(deserialize_with = "nullable")]
    kind: Interned,
    #[serde(deserialize_with = "nullable")]
    name: Interned,
}

impl From<WrittenClassRef> for NodeClassRef {
    fn from(written: WrittenClassRef) -> Self {
        let WrittenClassRef { group, api_version, kind, name } = written;
        if group.is_empty() && kind.is_empty() && !name.is_empty() {
            return Self { group: "karpenter.k8s.aws".into(), kind: "EC2NodeClass".into(), name };
        }
        match api_version.split_once('/').filter(|_| group.is_empty()) {
            Some((of_version, _)) => Self { group: of_version.into(), kind, name },
            None => Self { group, kind, name },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Requirement {
    #[serde(deserialize_with = "nullable")]
    pub key: Interned,
    #[serde(deserialize_with = "nullable")]
    pub operator: Interned,
    #[serde(deserialize_with = "nullable")]
    pub values: Box<[Interned]>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Resources {
    #[serde(deserialize_with = "nullable")]
    pub requests: Pairs,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeClaimStatus {
    #[serde(deserialize_with = "nullable")]
    pub conditions: Box<[Condition]>,
    #[serde(rename = "providerID", deserialize_with = "nullable")]
    pub provider_id: Interned,
    #[serde(rename = "imageID", deserialize_with = "nullable")]
    pub image_id: Interned,
    #[serde(deserialize_with = "nullable")]
    pub node_name: Interned,
    /// The resources for pods that Karpenter expects on the node, set once the instance is launched.
    #[serde(deserialize_with = "nullable")]
    pub allocatable: Pairs,
}

impl NodeClaim {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        conditions(&self.status.conditions, type_)
    }

    pub fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(Condition::is_true)
    }

    /// Whether its launch failed because the node class is not Ready: the class has the reason.
    /// Source: karpenter-provider-aws v0.37.0 pkg/cloudprovider/cloudprovider.go `Create`; from 1.0 on the reason says
    /// it.
    pub fn waits_for_class(&self) -> bool {
        let is_refused =
            |launched: &Condition| !launched.is_true() && launched.message.contains("resolving ec2nodeclass, ");
        self.condition("Launched").is_some_and(is_refused)
    }

    /// Whether its launch failed for want of the instance profile that Karpenter makes for the node class.
    /// Source: karpenter-provider-aws v0.32.1 pkg/providers/launchtemplate/launchtemplate.go `getInstanceProfile`;
    /// classes had no condition Ready before v0.37.
    pub fn waits_for_profile(&self) -> bool {
        let is_refused = |launched: &Condition| {
            !launched.is_true() && launched.message.contains("instance profile hasn't resolved for role")
        };
        self.condition("Launched").is_some_and(is_refused)
    }

    /// When the condition became True; `None` where it is not.
    pub fn true_since(&self, type_: &str) -> Option<DateTime<Utc>> {
        self.condition(type_).filter(|c| c.is_true()).and_then(|c| c.last_transition_time)
    }

    pub fn node_pool(&self) -> Option<&str> {
        self.metadata.label("karpenter.sh/nodepool")
    }

    /// The EC2 instance id at the end of an AWS providerID (`aws:///eu-west-1a/i-0123`).
    pub fn instance_id(&self) -> Option<&str> {
        self.status.provider_id.rsplit('/').next().filter(|id| id.starts_with("i-"))
    }

    /// Whether Karpenter will replace the machine because its node class selects another image now: reason and message
    /// are both AMIDrift.
    /// Source: karpenter-provider-aws v1.14.1 pkg/cloudprovider/drift.go.
    pub fn is_image_drifted(&self) -> bool {
        self.condition("Drifted").is_some_and(|c| c.is_true() && c.reason == "AMIDrift")
    }

    /// Drops the requirements that a label repeats, as Karpenter writes nearly all of them: half of what a NodeClaim
    /// weighs.
    pub(crate) fn drop_repetitions(&mut self) {
        let Self { metadata, spec, .. } = self;
        let repeated =
            |r: &Requirement| r.operator == "In" && matches!(&*r.values, [one] if metadata.label(&r.key) == Some(one));
        spec.requirements.retain(|r| !repeated(r));
        spec.requirements.shrink_to_fit();
    }

    /// The single value that a label or an `In` requirement fixes for `key`.
    pub fn fixed(&self, key: &str) -> Option<&str> {
        self.metadata.label(key).or_else(|| {
            self.spec.requirements.iter().find(|r| r.key == key && r.operator == "In").and_then(|r| match &*r.values {
                [one] => Some(one.as_str()),
                _ => None,
            })
        })
    }
}
