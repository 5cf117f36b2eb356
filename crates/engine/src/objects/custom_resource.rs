//! apiextensions.k8s.io/v1 CustomResourceDefinition, of Karpenter's kinds: which versions it serves, and who converts
//! one into another.

use super::webhook::WebhookClientConfig;
use super::{Meta, nullable};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CustomResourceDefinition {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub spec: CustomResourceSpec,
    #[serde(deserialize_with = "nullable")]
    pub status: CustomResourceStatus,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct CustomResourceSpec {
    #[serde(deserialize_with = "nullable")]
    pub group: String,
    #[serde(deserialize_with = "nullable")]
    pub conversion: Conversion,
    #[serde(deserialize_with = "nullable")]
    pub versions: Vec<ServedVersion>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Conversion {
    /// `None`, which changes the version's name and nothing else, or `Webhook`.
    #[serde(deserialize_with = "nullable")]
    pub strategy: String,
    #[serde(deserialize_with = "nullable")]
    pub webhook: ConversionWebhook,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversionWebhook {
    #[serde(deserialize_with = "nullable")]
    pub client_config: WebhookClientConfig,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct ServedVersion {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub served: bool,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CustomResourceStatus {
    /// Those that some object may still be stored as.
    #[serde(deserialize_with = "nullable")]
    pub stored_versions: Vec<String>,
}

impl CustomResourceDefinition {
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    pub fn serves(&self, version: &str) -> bool {
        self.spec.versions.iter().any(|own| own.served && own.name == version)
    }
}
