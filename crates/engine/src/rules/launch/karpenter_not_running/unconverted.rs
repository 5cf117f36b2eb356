//! The API server cannot give Karpenter its own objects: the CustomResourceDefinitions have another version, or name a
//! webhook that does not exist.

use crate::case::conversion::{ConversionFault, Unconverted};
use crate::objects::WebhookService;
use crate::rules::prelude::*;
use crate::upstream::karpenter::Version;

pub(super) fn onto(unconverted: &Unconverted, finding: Finding) -> Finding {
    match unconverted.fault {
        ConversionFault::NotServed => not_served(unconverted, finding),
        ConversionFault::NotDeclared { stored } => not_declared(unconverted, finding, stored),
        ConversionFault::NoService { asked, own } => {
            let namespace = own.metadata.namespace.as_deref().unwrap_or_default();
            let is_not = format!("which does not exist (Karpenter's is {namespace}/{})", own.metadata.name);
            let finding = unreached(unconverted, finding, asked, &is_not);
            let patch = format!(
                r#"[{{"op":"replace","path":"/spec/conversion/webhook/clientConfig/service/namespace","value":"{namespace}"}}]"#
            );
            finding
                .fix(
                    "Name Karpenter's Service in the CustomResourceDefinitions of all its kinds, with the chart \
                     karpenter-crd (webhook.serviceName, webhook.serviceNamespace), or with a patch of each. The \
                     chart karpenter has CustomResourceDefinitions, too, but they always name kube-system.",
                )
                .change(
                    "Set the namespace of Karpenter's Service. Repeat this for the other kinds",
                    format!("kubectl patch crd {} --type=json -p '{patch}'", unconverted.definition.name()),
                )
        }
        ConversionFault::NoPort { asked, port } => {
            let version = unconverted.karpenter.version;
            let is_not = if unconverted.karpenter.answers_webhooks() {
                format!("which has no port {port}")
            } else {
                format!("which has no port {port}, because Karpenter {version} runs no conversion webhook")
            };
            let fix = if version < Version(1, 1, 0) {
                "Upgrade the CustomResourceDefinitions (chart karpenter-crd) and Karpenter to the same version, and \
                 set webhook.enabled to the same value in both charts. If v1 was never in use, it is enough to remove \
                 spec.conversion from the CustomResourceDefinitions."
            } else {
                "Go back to the last Karpenter 1.0 with its CustomResourceDefinitions and webhook.enabled, until \
                 status.storedVersions lists only v1. Then upgrade: since 1.1, Karpenter no longer converts v1beta1."
            };
            unreached(unconverted, finding, asked, &is_not).fix(fix).change(
                "Correct or remove spec.conversion. Repeat this for the other kinds",
                format!("kubectl edit crd {}", unconverted.definition.name()),
            )
        }
    }
}

fn blamed(unconverted: &Unconverted) -> Blame {
    Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", unconverted.definition.name())
}

/// Helm does not change the CustomResourceDefinitions of a chart.
fn not_served(unconverted: &Unconverted, finding: Finding) -> Finding {
    let Unconverted { definition, karpenter, version, .. } = unconverted;
    let versions = &definition.spec.versions;
    let served: Vec<&str> = versions.iter().filter(|own| own.served).map(|own| own.name.as_str()).collect();
    let (name, served, running) = (definition.name(), served.join(", "), karpenter.version);
    let wants = if *version == karpenter.reads() {
        format!("Karpenter {running} reads {version}")
    } else {
        format!(
            "Karpenter {running} converts objects with its webhook. To check the conversion it requests NodePools as \
             {version}, and exits if the API server does not serve {version}"
        )
    };
    finding
        .adding(&format!(
            "{wants}. CustomResourceDefinition {name} serves only {served}, so its version differs from Karpenter's."
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "spec.versions",
            format!("serves {served}"),
            format!("Karpenter {running} does not run without {version}"),
        ))
        .blaming(blamed(unconverted).field("spec.versions"))
        .fix(
            "Upgrade Karpenter's CustomResourceDefinitions to its version, with the chart karpenter-crd or kubectl \
             apply. A helm upgrade of the chart karpenter does not change them.",
        )
        .inspect(
            "See which versions are served",
            format!("kubectl get crd {name} -o jsonpath='{{.spec.versions[*].name}}'"),
        )
}

/// The API server refuses to remove such a version from spec.versions. A definition that was deleted and recreated
/// while its objects stayed can lack it.
/// Source: apiextensions-apiserver v0.36.3 pkg/apis/apiextensions/validation/validation.go.
fn not_declared(unconverted: &Unconverted, finding: Finding, stored: &str) -> Finding {
    let Unconverted { definition, karpenter, .. } = unconverted;
    let name = definition.name();
    let kind = name.split('.').next().unwrap_or(name);
    let declared: Vec<&str> = definition.spec.versions.iter().map(|own| own.name.as_str()).collect();
    finding
        .adding(&format!(
            "CustomResourceDefinition {name} has objects that are still stored as {stored}, but no longer declares \
             that version. The API server cannot convert them, so nothing can list {kind}, and neither can Karpenter \
             {}.",
            karpenter.version
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "status.storedVersions",
            definition.status.stored_versions.join(", "),
            format!(
                "spec.versions declares only {}: request to convert CR from an invalid group/version",
                declared.join(", ")
            ),
        ))
        .blaming(blamed(unconverted).field("spec.versions"))
        .fix(format!(
            "Go back to the CustomResourceDefinitions of the last Karpenter 1.0 (chart karpenter-crd), which declare \
             {stored} and convert it with Karpenter's webhook. Write each object again, remove {stored} from \
             status.storedVersions, and then upgrade to this version."
        ))
        .inspect("See the API server's error", format!("kubectl get {kind}"))
}

fn unreached(unconverted: &Unconverted, finding: Finding, asked: &WebhookService, is_not: &str) -> Finding {
    let Unconverted { definition, karpenter, version, .. } = unconverted;
    let (name, WebhookService { namespace, name: service, .. }) = (definition.name(), asked);
    let stored = &definition.status.stored_versions;
    let others: Vec<&str> = stored.iter().map(String::as_str).filter(|own| own != version).collect();
    let others = others.join(" or ");
    finding
        .adding(&format!(
            "CustomResourceDefinition {name} converts with a webhook of Service {namespace}/{service}, {is_not}. \
             Karpenter {}, which reads {version}, cannot read objects that are stored as {others}.",
            karpenter.version
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "spec.conversion.webhook.clientConfig.service",
            format!("{namespace}/{service}"),
            "the API server answers every client that lists them, kubectl too: conversion webhook for … failed",
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "status.storedVersions",
            stored.join(", "),
            format!("some objects are still stored as {others}"),
        ))
        .blaming(blamed(unconverted).field("spec.conversion"))
        .inspect("See the API server's error", format!("kubectl get {}", name.split('.').next().unwrap_or(name)))
}
