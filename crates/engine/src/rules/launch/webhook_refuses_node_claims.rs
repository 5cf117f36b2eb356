//! A webhook of an earlier Karpenter was left behind, nobody answers it any more, and it fails closed.

use crate::api::{Blame, Confidence, Evidence, Link, Risk, Stage};
use crate::case::finding::{Finding, Opinion};
use crate::case::stage::Symptom;
use crate::case::{Case, admission};
use crate::objects::WebhookService;
use crate::objects::input::Input;
use crate::rules::Rule;

pub static RULE: Rule = Rule {
    cause: "WebhookRefusesNodeClaims",
    summary: "A webhook that an earlier Karpenter left behind refuses every NodeClaim, for nobody answers it",
    stages: &[Stage::Launch],
    reads: &[Input::Deployments, Input::MutatingWebhooks, Input::ValidatingWebhooks],
    lint: false,
    versions: "Karpenter 0.33 and later, once its webhooks are switched off; 1.1 and later have none",
    page: include_str!("../../../pages/WebhookRefusesNodeClaims.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    if case.wait.symptom != Symptom::ClaimsRefused {
        return Opinion::Silent;
    }
    let (Some(refusal), Some(karpenter)) = (admission::refuses_claims(case.cluster), case.karpenter()) else {
        return Opinion::Silent;
    };
    let (kind, config) = (refusal.kind, &refusal.config.metadata.name);
    let WebhookService { namespace, name: service, .. } = refusal.service;
    let (_, deployment) = karpenter.deployment.split_once('/').unwrap_or_default();
    let why = match karpenter.disable_webhook.as_deref() {
        Some(value) if !value.is_empty() => format!("DISABLE_WEBHOOK={value}"),
        _ => "which has none, or has them off unless it is told otherwise".to_owned(),
    };
    let plural = format!("{}s", kind.to_ascii_lowercase());
    Finding::new(
        Confidence::Certain,
        format!(
            "{} launches nothing, for no NodeClaim can be made: {kind} {config} is left over, has each admitted by service {namespace}/{service}, and refuses it where nobody answers; Karpenter {} serves no webhook ({why}).",
            case.subject().replacen('/', " ", 1),
            karpenter.version
        ),
        Evidence::new(
            format!("{kind}/{config}"),
            "webhooks",
            format!("{}: CREATE nodeclaims, failurePolicy Fail, service {namespace}/{service}", refusal.webhook.name),
            "the API server asks it before it takes a NodeClaim",
        ),
    )
    .with(Evidence::new(
        format!("Deployment/{deployment}"),
        "spec.template.spec.containers[0].env",
        format!("{}, {why}", karpenter.version),
        "the service is this one's, and has no port for webhooks then",
    ))
    .with(case.wait.evidence.clone())
    .linked([
        Link::new(case.subject(), "pods wait, and no NodeClaim has come since"),
        Link::new(format!("{kind}/{config}"), "it refuses every NodeClaim"),
    ])
    .blaming(Blame::object("admissionregistration.k8s.io/v1", kind, config).field("webhooks"))
    .fix("Delete what is left of Karpenter's webhooks (validation.webhook.karpenter.sh and its like), or switch them on again where this version still has them (Helm: webhook.enabled=true).")
    .step(
        Risk::Inspect,
        "See which configurations of Karpenter's are left",
        Some("kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations".to_owned()),
    )
    .step(Risk::Destructive, "Delete it; nobody answers it", Some(format!("kubectl delete {plural} {config}")))
    .into()
}
