//! admissionregistration.k8s.io/v1: the webhooks that the API server asks before it takes an object.

use super::{LabelSelector, Meta, nullable};
use serde::{Deserialize, Serialize};

/// A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration: what is read of both is the same.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct WebhookConfiguration {
    pub metadata: Meta,
    #[serde(deserialize_with = "nullable")]
    pub webhooks: Vec<Webhook>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhook {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub failure_policy: String,
    #[serde(deserialize_with = "nullable")]
    pub client_config: WebhookClientConfig,
    #[serde(deserialize_with = "nullable")]
    pub namespace_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    pub object_selector: LabelSelector,
    #[serde(deserialize_with = "nullable")]
    pub rules: Vec<WebhookRule>,
    #[serde(deserialize_with = "nullable")]
    pub match_conditions: Vec<MatchCondition>,
}

/// Which requests a webhook is asked about.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WebhookRule {
    #[serde(deserialize_with = "nullable")]
    pub operations: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub api_groups: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub api_versions: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub resources: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub scope: String,
}

/// A match condition. nodewhy does not read its expression.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct MatchCondition {
    #[serde(deserialize_with = "nullable")]
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct WebhookClientConfig {
    pub service: Option<WebhookService>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct WebhookService {
    #[serde(deserialize_with = "nullable")]
    pub namespace: String,
    #[serde(deserialize_with = "nullable")]
    pub name: String,
    /// 443 where it is not said.
    pub port: Option<u16>,
}
