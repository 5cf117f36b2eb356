//! The admission webhook or policy that a message of the API server names.

use crate::api::Blame;
use crate::case::Case;
use crate::objects::{Webhook, WebhookConfiguration};

pub(crate) const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// The same words in a log, which escapes quotes.
const ESCAPED: &str = "webhook \\\"";

/// The name of the webhook.
/// Source: k8s.io/apiserver v0.36.3 pkg/admission/plugin/webhook/errors/statuserror.go, generic/webhook.go:
/// `failed calling webhook "NAME"`, `admission webhook "NAME" denied the request`.
pub(crate) fn named(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("webhook \"").or_else(|| said.split_once(ESCAPED))?;
    rest.split(['\\', '"']).next().filter(|name| !name.is_empty())
}

/// The name of the policy.
/// Source: k8s.io/apiserver v0.36.3 pkg/admission/plugin/policy/validating/dispatcher.go.
pub(crate) fn named_policy(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("ValidatingAdmissionPolicy '")?;
    rest.split('\'').next().filter(|name| !name.is_empty())
}

/// The configuration that holds the webhook. If several do, one that fails closed.
pub(crate) fn holder<'w>(case: &Case<'w>, name: &str) -> Option<(&'static str, &'w WebhookConfiguration, &'w Webhook)> {
    case.cluster.webhooks(name).min_by_key(|(.., webhook)| webhook.failure_policy == "Ignore")
}

/// A configuration whose webhooks are to be changed.
pub(crate) fn blame(kind: &str, config: &str) -> Blame {
    Blame::object(ADMISSION, kind, config).field("webhooks")
}

/// The object that refuses, if the message names it and the cluster has it.
pub(crate) fn refusing(case: &Case, said: &str) -> Option<Blame> {
    if let Some((kind, config, _)) = named(said).and_then(|name| holder(case, name)) {
        return Some(blame(kind, &config.metadata.name));
    }
    named_policy(said).map(|policy| Blame::object(ADMISSION, "ValidatingAdmissionPolicy", policy))
}

#[cfg(test)]
mod tests {
    use super::{named, named_policy};

    #[test]
    fn a_webhook_is_named_in_plain_and_escaped_quotes() {
        let name = Some("nodes.example.com");
        assert_eq!(named(r#"failed calling webhook "nodes.example.com": failed to call webhook: Post"#), name);
        assert_eq!(named(r#"err="admission webhook \"nodes.example.com\" denied the request: no""#), name);
        assert_eq!(named("the webhook is slow"), None);
        assert_eq!(named("webhook \"\" denied"), None);
        assert_eq!(named_policy("ValidatingAdmissionPolicy 'nodes' with binding 'all' denied request"), Some("nodes"));
    }
}
