//! A webhook of an earlier Karpenter was left behind, no service answers it any more, and it fails closed.

use crate::case::admission;
use crate::facts::webhook;
use crate::objects::WebhookService;
use crate::rules::prelude::*;

rule! {
    cause: WebhookRefusesNodeClaims,
    summary: "A leftover Karpenter webhook blocks every NodeClaim because its service is gone",
    stages: [Launch],
    reads: [Deployments, MutatingWebhooks, ValidatingWebhooks],
    versions: "Karpenter 0.33 and later, after its webhooks are switched off; 1.1 and later have none",
}

fn check(case: &Case) -> Option<Opinion> {
    if case.wait.symptom != Symptom::ClaimsRefused {
        return None;
    }
    let (refusal, karpenter) = (admission::refuses_claims(case.cluster)?, case.karpenter()?);
    let (kind, config) = (refusal.kind, &refusal.config.metadata.name);
    let WebhookService { namespace, name: service, .. } = refusal.service;
    let (_, deployment) = karpenter.deployment.split_once('/').unwrap_or_default();
    let why = match karpenter.disable_webhook.as_deref() {
        Some(value) if !value.is_empty() => format!("DISABLE_WEBHOOK={value}"),
        _ => "which has none, or has them off by default".to_owned(),
    };
    let plural = format!("{}s", kind.to_ascii_lowercase());
    Finding::new(
        Confidence::Certain,
        format!(
            "{} launches nothing, because no NodeClaim can be created. The leftover {kind} {config} sends each \
             NodeClaim to service {namespace}/{service} and refuses it if the service does not answer, but Karpenter \
             {} serves no webhook ({why}).",
            case.subject().replacen('/', " ", 1),
            karpenter.version
        ),
        Evidence::new(
            format!("{kind}/{config}"),
            "webhooks",
            format!("{}: CREATE nodeclaims, failurePolicy Fail, service {namespace}/{service}", refusal.webhook.name),
            "the API server calls it before it accepts a NodeClaim",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].env",
        format!("{}, {why}", karpenter.version),
        "the service belongs to this Deployment, and then has no port for webhooks",
    ))
    .with(case.wait.evidence.clone())
    .linked([
        Link::new(case.subject(), "pods wait, and no NodeClaim has appeared since"),
        Link::new(format!("{kind}/{config}"), "it refuses every NodeClaim"),
    ])
    .blaming(webhook::blame(kind, config))
    .fix(
        "Delete what is left of Karpenter's webhooks (validation.webhook.karpenter.sh and similar ones). Or switch \
         them on again, if this version still has them (Helm: webhook.enabled=true).",
    )
    .inspect(
        "See which of Karpenter's webhook configurations are left",
        "kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations".to_owned(),
    )
    .destroy("Delete it (no service answers it)", format!("kubectl delete {plural} {config}"))
    .into()
}
