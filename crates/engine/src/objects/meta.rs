//! What every kind shares: metadata, conditions, taints.

use super::quote::steady;
use super::{Pairs, Volatile, message, nullable};
use crate::objects::intern::Interned;
use chrono::{DateTime, Utc};
use readers::source_text;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;
use std::fmt;

/// `metadata`, without what no rule reads.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    #[serde(deserialize_with = "nullable")]
    pub name: Interned,
    pub namespace: Option<Interned>,
    #[serde(deserialize_with = "nullable")]
    pub uid: Box<str>,
    pub resource_version: Volatile<Option<Box<str>>>,
    pub creation_timestamp: Option<DateTime<Utc>>,
    pub deletion_timestamp: Option<DateTime<Utc>>,
    #[serde(deserialize_with = "nullable")]
    pub labels: Pairs,
    #[serde(deserialize_with = "nullable")]
    pub annotations: Pairs,
    #[serde(deserialize_with = "nullable")]
    pub owner_references: Box<[OwnerReference]>,
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Box<[Interned]>,
    #[serde(deserialize_with = "nullable")]
    pub managed_fields: ManagedFields,
}

impl Meta {
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }

    /// The last writer of `spec` or `data`, with the time.
    pub fn last_written(&self) -> Option<Written> {
        let writers = self.managed_fields.0.iter().filter(|f| f.owns_content);
        writers.filter_map(|f| Some(Written { at: f.time?, by: f.writer().to_owned() })).max()
    }
}

/// A change of an object's content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    pub at: DateTime<Utc>,
    /// The field manager, as a sentence names it.
    pub by: String,
}

/// The labels whose owners are read: the cloud controller sets them in the one update that also removes its taint.
/// Source: k8s.io/cloud-provider v0.36.3 controllers/node/node_controller.go `getNodeModifiersFromCloudProvider`.
pub const CLOUD_LABELS: [&str; 3] = [
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
];

/// The entries of `managedFields` that tell something: those that own the taint list, the cordon, such a label or the
/// object's content.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ManagedFields(pub Box<[ManagedField]>);

impl<'de> Deserialize<'de> for ManagedFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let all = Vec::<ManagedField>::deserialize(deserializer)?;
        Ok(Self(all.into_iter().filter(ManagedField::tells).collect()))
    }
}

/// One owner reference.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    #[serde(deserialize_with = "nullable")]
    pub api_version: Interned,
    pub kind: Interned,
    pub name: Interned,
}

/// One entry of `managedFields`, reduced to who, when, and what of the above it owns.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ManagedField {
    pub manager: Interned,
    pub time: Option<DateTime<Utc>>,
    /// The entry owns `spec.taints`; the list is atomic, so the newest owner wrote it last.
    pub owns_taints: bool,
    /// The entry owns `spec.unschedulable`: its manager cordoned the Node.
    pub owns_cordon: bool,
    /// The entry owns fields of `spec` or `data`, and came by the object itself, not by a subresource such as `status`
    /// or `scale`.
    pub owns_content: bool,
    /// Which of [`CLOUD_LABELS`] the entry owns, not by a subresource.
    owns_labels: [bool; CLOUD_LABELS.len()],
}

impl ManagedField {
    fn tells(&self) -> bool {
        self.owns_taints || self.owns_cordon || self.owns_content || self.owns_labels.contains(&true)
    }

    /// The manager, as a sentence names it. The API server writes `unknown` for a client that gives neither a field
    /// manager nor a user agent.
    /// Source: k8s.io/apimachinery v0.36.3 pkg/util/managedfields/internal/buildmanagerinfo.go `buildManagerInfo`.
    pub fn writer(&self) -> &str {
        match self.manager.as_str() {
            "" | "unknown" => "a client without a name",
            manager => manager,
        }
    }

    /// Whether the entry owns this one of [`CLOUD_LABELS`].
    pub fn owns_label(&self, key: &str) -> bool {
        CLOUD_LABELS.into_iter().zip(self.owns_labels).any(|(label, owned)| owned && label == key)
    }
}

impl<'de> Deserialize<'de> for ManagedField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Raw {
            #[serde(deserialize_with = "nullable")]
            manager: Interned,
            time: Option<DateTime<Utc>>,
            #[serde(deserialize_with = "nullable")]
            subresource: Interned,
            fields_v1: Option<Fields>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Fields {
            #[serde(rename = "f:metadata")]
            metadata: Option<Metadata>,
            #[serde(rename = "f:spec")]
            spec: Option<Spec>,
            #[serde(rename = "f:data")]
            data: Option<IgnoredAny>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Spec {
            #[serde(rename = "f:taints")]
            taints: Option<IgnoredAny>,
            #[serde(rename = "f:unschedulable")]
            unschedulable: Option<IgnoredAny>,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Metadata {
            #[serde(rename = "f:labels")]
            labels: Option<Labels>,
        }
        /// In the order of [`CLOUD_LABELS`].
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Labels {
            #[serde(rename = "f:beta.kubernetes.io/instance-type")]
            instance_type: Option<IgnoredAny>,
            #[serde(rename = "f:failure-domain.beta.kubernetes.io/zone")]
            zone: Option<IgnoredAny>,
            #[serde(rename = "f:failure-domain.beta.kubernetes.io/region")]
            region: Option<IgnoredAny>,
        }
        let raw = Raw::deserialize(deserializer)?;
        let is_whole = raw.subresource.is_empty();
        let fields = raw.fields_v1.unwrap_or_default();
        let labels = fields.metadata.and_then(|m| m.labels).filter(|_| is_whole).unwrap_or_default();
        let owns_content = is_whole && (fields.spec.is_some() || fields.data.is_some());
        let spec = fields.spec.unwrap_or_default();
        let (owns_taints, owns_cordon) = (spec.taints.is_some(), spec.unschedulable.is_some());
        let owns_labels = [labels.instance_type, labels.zone, labels.region].map(|label| label.is_some());
        Ok(Self { manager: raw.manager, time: raw.time, owns_taints, owns_cordon, owns_content, owns_labels })
    }
}

/// As the API server would write an entry of which this much is known.
impl Serialize for ManagedField {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = json!({});
        if self.owns_taints || self.owns_cordon || self.owns_content {
            fields["f:spec"] = json!({});
        }
        for (field, _) in [("f:taints", self.owns_taints), ("f:unschedulable", self.owns_cordon)]
            .into_iter()
            .filter(|(_, owned)| *owned)
        {
            fields["f:spec"][field] = json!({});
        }
        for (label, _) in CLOUD_LABELS.into_iter().zip(self.owns_labels).filter(|(_, owned)| *owned) {
            fields["f:metadata"]["f:labels"][format!("f:{label}")] = json!({});
        }
        let mut entry = json!({"manager": self.manager, "time": self.time, "fieldsV1": fields});
        if (self.owns_taints || self.owns_cordon) && !self.owns_content {
            entry["subresource"] = json!("status");
        }
        entry.serialize(serializer)
    }
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub type_: Interned,
    #[serde(deserialize_with = "nullable")]
    pub status: Interned,
    #[serde(with = "message")]
    pub reason: Interned,
    #[serde(with = "message")]
    pub message: Interned,
    pub last_transition_time: Option<DateTime<Utc>>,
    pub last_heartbeat_time: Volatile<Option<DateTime<Utc>>>,
}

impl Condition {
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    pub fn is_false(&self) -> bool {
        self.status == "False"
    }

    /// `Unknown NodeNotFound: Node not registered with cluster`.
    pub fn shown(&self) -> String {
        let mut out = String::with_capacity(self.status.len() + self.reason.len() + self.message.len() + 3);
        out.push_str(&self.status);
        if !self.reason.is_empty() && self.reason != self.type_ {
            out.push(' ');
            out.push_str(&self.reason);
        }
        if !self.message.is_empty() {
            out.push_str(": ");
            out.push_str(&self.said());
        }
        out
    }

    /// Its message, for sentences.
    pub fn said(&self) -> String {
        source_text::mask(&steady(&self.message))
    }
}

/// Finds a condition by its type.
pub fn conditions<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// A taint on a Node, a NodePool or a NodeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Taint {
    #[serde(deserialize_with = "nullable")]
    pub key: Interned,
    #[serde(deserialize_with = "nullable")]
    pub value: Interned,
    #[serde(deserialize_with = "nullable")]
    pub effect: Interned,
    pub time_added: Option<DateTime<Utc>>,
}

impl Taint {
    /// Whether it keeps pods off that do not tolerate it. The third effect is only a preference.
    /// Source: kubernetes k8s.io/api/core/v1/types.go `TaintEffect` (v0.36.3).
    pub fn keeps_pods_off(&self) -> bool {
        self.effect != "PreferNoSchedule"
    }

    /// Karpenter and the scheduler compare taints by key and effect; the value does not matter.
    /// Source: kubernetes k8s.io/api/core/v1/taint.go `MatchTaint` (v0.36.3).
    pub fn matches(&self, other: &Self) -> bool {
        self.key == other.key && self.effect == other.effect
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, value, effect, .. } = self;
        if value.is_empty() { write!(f, "{key}:{effect}") } else { write!(f, "{key}={value}:{effect}") }
    }
}
