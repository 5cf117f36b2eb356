//! userData gives the kubelet a label that it may not set on itself: it exits at start-up, and no Node ever appears.

use crate::api::Text;
use crate::rules::prelude::*;
use readers::source_text::{self, Span};

rule! {
    cause: KubeletRefusesLabels,
    summary: "userData passes a node label in a reserved namespace, over which the kubelet exits",
    stages: [Join],
    reads: [NodeClaims, NodeClasses, Deployments],
    lint: true,
    versions: "kubelet 1.16 and later",
}

fn check(case: &Case) -> Option<Opinion> {
    let ((user_data, text), class) = (case.user_data()?, case.class()?);
    let refused = user_data.refused_labels();
    if let Some(sibling) = case.same_spec_sibling_joined() {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with the same userData", sibling.name()),
        ));
    }
    let (key, span) = refused.first()?;
    let place = source_text::position(text, span.start);
    let name = class.name();
    let argument = user_data.all("node-labels").find(|a| a.span.start <= span.start && span.end <= a.span.end);
    let confidence =
        if argument.is_none_or(|a| a.is_certain_of(span.of(text))) { Confidence::Certain } else { Confidence::Likely };
    let keys = refused.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>().join(", ");
    Finding::new(
        confidence,
        format!(
            "userData of {} {name}, line {}, gives the kubelet the label {keys}, which it is not allowed to set on \
             itself, so it exits at start-up and no Node appears.",
            class.kind, place.line
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::quoted(text, *span),
            // kubernetes v1.36.3 cmd/kubelet/app/options/options.go ValidateKubeletFlags
            format!(
                "of kubernetes.io and k8s.io the kubelet may set only its own set and *.node.kubernetes.io, \
                 *.kubelet.kubernetes.io; {key} is neither"
            ),
        ),
    )
    .blaming(Blame::class(class).field("spec.userData").at(text, *span))
    .fix(fix(case, &refused))
    .change("Rename or remove the label", format!("kubectl edit ec2nodeclass {name}"))
    .into()
}

/// Whether the NodePool's template may have the labels depends on Karpenter.
fn fix(case: &Case, refused: &[(String, Span)]) -> Text {
    let Some(karpenter) = case.karpenter() else {
        return "Use another prefix, for example node.kubernetes.io/…, in userData. With Karpenter 1.9 or newer you can \
                set the label in the NodePool's template instead: Karpenter puts it on the Node itself."
            .into();
    };
    if refused.iter().all(|(key, _)| karpenter.takes_kubernetes_label(key)) {
        return "Use another prefix, for example node.kubernetes.io/…, or set the label in the NodePool's template: \
                Karpenter puts it on the Node itself."
            .into();
    }
    format!(
        "Use another prefix, for example node.kubernetes.io/…, in userData. Karpenter {} refuses such a label in the \
         NodePool's template, and 1.9 or newer accepts it.",
        karpenter.version
    )
    .into()
}
