//! storage.k8s.io/v1 VolumeAttachment: a volume that a Node has, or is to be rid of.

use super::{Meta, message, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct VolumeAttachment {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: VolumeAttachmentSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: VolumeAttachmentStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSpec {
    /// The CSI driver, by its own name.
    #[serde(deserialize_with = "nullable")]
    pub attacher: String,
    #[serde(deserialize_with = "nullable")]
    pub node_name: String,
    #[serde(deserialize_with = "nullable")]
    pub source: VolumeSource,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeSource {
    pub persistent_volume_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentStatus {
    pub detach_error: Option<VolumeError>,
}

/// Its time moves with every try.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct VolumeError {
    #[serde(with = "message")]
    pub message: String,
}
