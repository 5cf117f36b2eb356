//! Webhooks that the API server asks before it takes an object of Karpenter's.

use crate::cluster_state::ClusterState;
use crate::objects::{Webhook, WebhookConfiguration, WebhookService};
use crate::upstream::karpenter::Karpenter;

/// A webhook with failurePolicy Fail. Nothing behind its service answers.
#[derive(Debug, Clone, Copy)]
pub struct Unanswered<'w> {
    pub kind: &'static str,
    pub config: &'w WebhookConfiguration,
    pub webhook: &'w Webhook,
    pub service: &'w WebhookService,
}

/// A leftover webhook of an earlier Karpenter that refuses every new NodeClaim. It calls the service of the running
/// Karpenter, which serves no webhooks.
///
/// The chart gives the service the name of its Deployment.
/// Source: karpenter-provider-aws charts/karpenter/templates/service.yaml, webhooks-core.yaml (v0.32.10, v1.0.8).
pub fn refuses_claims(cluster: &ClusterState) -> Option<Unanswered<'_>> {
    let karpenter =
        cluster.karpenter().filter(|karpenter| karpenter.stopped.is_none() && !karpenter.answers_webhooks())?;
    cluster.all_webhooks().find_map(|(kind, config, webhook)| {
        let service = webhook.client_config.service.as_ref()?;
        let own = karpenter.deployment.split_once('/') == Some((&service.namespace, &service.name));
        (own && is_asked(webhook, karpenter)).then_some(Unanswered { kind, config, webhook, service })
    })
}

/// Whether the API server calls the webhook when a NodeClaim is created. Rules for older API versions do not count:
/// nodewhy does not read which versions the API server still serves. NodeClaims have no namespace.
/// Source: k8s.io/apiserver v0.36.3 pkg/admission/plugin/webhook/predicates/rules/rules.go `Matches`.
fn is_asked(webhook: &Webhook, karpenter: &Karpenter) -> bool {
    let any = |items: &[String], wanted: &[&str]| items.iter().any(|item| wanted.contains(&item.as_str()));
    let of_claims = webhook.rules.iter().any(|rule| {
        any(&rule.operations, &["CREATE", "*"])
            && any(&rule.api_groups, &["karpenter.sh", "*"])
            && any(&rule.api_versions, &[karpenter.reads(), "*"])
            && any(&rule.resources, &["nodeclaims", "*", "*/*"])
            && rule.scope != "Namespaced"
    });
    // What a CEL expression, or a selector of labels, leaves out is not known here. Fail is the default of v1.
    of_claims
        && webhook.match_conditions.is_empty()
        && webhook.object_selector.selects(&crate::objects::Pairs::default())
        && webhook.failure_policy != "Ignore"
}
