//! The API server cannot give Karpenter its own objects: the CustomResourceDefinitions are of another version, or name a
//! webhook that is not there.

use crate::api::{Blame, Evidence, Risk};
use crate::case::conversion::{ConversionFault, Unconverted};
use crate::case::finding::Finding;
use crate::objects::WebhookService;
use crate::upstream::karpenter::Version;

pub(super) fn onto(unconverted: &Unconverted, finding: Finding) -> Finding {
    match unconverted.fault {
        ConversionFault::NotServed => not_served(unconverted, finding),
        ConversionFault::NotDeclared { stored } => not_declared(unconverted, finding, stored),
        ConversionFault::NoService { asked, own } => {
            let namespace = own.metadata.namespace.as_deref().unwrap_or_default();
            let is_not = format!("which is not there (Karpenter's is {namespace}/{})", own.metadata.name);
            let finding = unreached(unconverted, finding, asked, &is_not);
            let patch = format!(
                r#"[{{"op":"replace","path":"/spec/conversion/webhook/clientConfig/service/namespace","value":"{namespace}"}}]"#
            );
            finding
                .fix("Name Karpenter's Service in the CustomResourceDefinitions of all its kinds: by the chart karpenter-crd (webhook.serviceName, webhook.serviceNamespace), or by a patch of each. Those that come with the chart karpenter name kube-system.")
                .step(
                    Risk::Mutating,
                    "Name the namespace of Karpenter's Service; so with the other kinds",
                    Some(format!("kubectl patch crd {} --type=json -p '{patch}'", unconverted.definition.name())),
                )
        }
        ConversionFault::NoPort { asked, port } => {
            let version = unconverted.karpenter.version;
            let is_not = if unconverted.karpenter.answers_webhooks() {
                format!("which has no port {port}")
            } else {
                format!("which has no port {port}, for Karpenter {version} converts nothing")
            };
            let fix = if version < Version(1, 1, 0) {
                "Bring CustomResourceDefinitions (chart karpenter-crd) and Karpenter to one version, with webhook.enabled the same in both charts. Where v1 was never in use, a definition without spec.conversion will do."
            } else {
                "Go back to the last Karpenter 1.0 with its CustomResourceDefinitions and webhook.enabled, until status.storedVersions says v1 only; then on: nothing converts v1beta1 since 1.1."
            };
            unreached(unconverted, finding, asked, &is_not).fix(fix).step(
                Risk::Mutating,
                "Correct or remove spec.conversion; so with the other kinds",
                Some(format!("kubectl edit crd {}", unconverted.definition.name())),
            )
        }
    }
}

fn blamed(unconverted: &Unconverted) -> Blame {
    Blame::object("apiextensions.k8s.io/v1", "CustomResourceDefinition", unconverted.definition.name())
}

/// Helm leaves the CustomResourceDefinitions of a chart as they are.
fn not_served(unconverted: &Unconverted, finding: Finding) -> Finding {
    let Unconverted { definition, karpenter, version, .. } = unconverted;
    let versions = &definition.spec.versions;
    let served: Vec<&str> = versions.iter().filter(|own| own.served).map(|own| own.name.as_str()).collect();
    let (name, served, running) = (definition.name(), served.join(", "), karpenter.version);
    let wants = if *version == karpenter.reads() {
        format!("Karpenter {running} reads {version}")
    } else {
        format!(
            "Karpenter {running} converts by its webhook, asks for NodePools as {version} to see that it does, and ends where it gets none"
        )
    };
    finding
        .adding(&format!("{wants}; CustomResourceDefinition {name} serves {served} only: it is of another version than Karpenter."))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "spec.versions",
            format!("serves {served}"),
            format!("Karpenter {running} cannot do without {version}"),
        ))
        .blaming(blamed(unconverted).field("spec.versions"))
        .fix("Bring Karpenter's CustomResourceDefinitions to its version, by the chart karpenter-crd or kubectl apply: helm upgrade of the chart karpenter leaves them as they are.")
        .step(
            Risk::Inspect,
            "See which versions are served",
            Some(format!("kubectl get crd {name} -o jsonpath='{{.spec.versions[*].name}}'")),
        )
}

/// The API server refuses to take such a version out of spec.versions; a definition that was deleted and made anew while
/// its objects stayed comes by it.
/// Source: apiextensions-apiserver v0.36.3 pkg/apis/apiextensions/validation/validation.go.
fn not_declared(unconverted: &Unconverted, finding: Finding, stored: &str) -> Finding {
    let Unconverted { definition, karpenter, .. } = unconverted;
    let name = definition.name();
    let kind = name.split('.').next().unwrap_or(name);
    let declared: Vec<&str> = definition.spec.versions.iter().map(|own| own.name.as_str()).collect();
    finding
        .adding(&format!(
            "CustomResourceDefinition {name} has objects that are still stored as {stored}, and no longer declares that version: the API server cannot convert them, so nobody can list {kind}, Karpenter {} neither.",
            karpenter.version
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "status.storedVersions",
            definition.status.stored_versions.join(", "),
            format!("spec.versions declares {} only: request to convert CR from an invalid group/version", declared.join(", ")),
        ))
        .blaming(blamed(unconverted).field("spec.versions"))
        .fix(format!(
            "Go back to the CustomResourceDefinitions of the last Karpenter 1.0 (chart karpenter-crd), which declare {stored} and convert it by Karpenter's webhook; write each object once more, take {stored} out of status.storedVersions, and then go on to this version."
        ))
        .step(Risk::Inspect, "See what the API server says", Some(format!("kubectl get {kind}")))
}

fn unreached(unconverted: &Unconverted, finding: Finding, asked: &WebhookService, is_not: &str) -> Finding {
    let Unconverted { definition, karpenter, version, .. } = unconverted;
    let (name, WebhookService { namespace, name: service, .. }) = (definition.name(), asked);
    let stored = &definition.status.stored_versions;
    let others: Vec<&str> = stored.iter().map(String::as_str).filter(|own| own != version).collect();
    let others = others.join(" or ");
    finding
        .adding(&format!("CustomResourceDefinition {name} converts by a webhook of Service {namespace}/{service}, {is_not}: Karpenter {}, which reads {version}, cannot read what is stored as {others}.", karpenter.version))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "spec.conversion.webhook.clientConfig.service",
            format!("{namespace}/{service}"),
            "conversion webhook for … failed: so the API server answers whoever lists them, kubectl too",
        ))
        .with(Evidence::new(
            format!("CustomResourceDefinition/{name}"),
            "status.storedVersions",
            stored.join(", "),
            format!("some objects are still stored as {others}"),
        ))
        .blaming(blamed(unconverted).field("spec.conversion"))
        .step(
            Risk::Inspect,
            "See what the API server says",
            Some(format!("kubectl get {}", name.split('.').next().unwrap_or(name))),
        )
}
