//! userData sets a feature gate that the kubelet does not know, or no longer lets anybody set: it exits, and no Node
//! ever appears.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::kubelet_version;
use readers::source_text;
use readers::userdata::feature_gates::GateRefusal;

pub static RULE: Rule = Rule {
    cause: "FeatureGateRefused",
    summary: "userData sets a feature gate that this kubelet does not know, or that is locked, over which it exits",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses],
    lint: false,
    versions: "Kubernetes 1.21 to 1.36, by gate",
    page: include_str!("../../../pages/FeatureGateRefused.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(claim), Some((user_data, text)), Some(class)) = (case.claim, case.user_data(), case.class()) else {
        return Opinion::Silent;
    };
    let Some(kubelet) = kubelet_version::of(case) else { return Opinion::Silent };
    let Some(gate) = user_data.refused_gates(kubelet.minor).next() else { return Opinion::Silent };
    // An older kubelet knows what is gone by now; what is not there yet, any that joined shows to be there.
    let since = match gate.refusal {
        GateRefusal::Gone(since) | GateRefusal::Locked(since, _) => since,
        GateRefusal::NotYet(_) | GateRefusal::Unknown => 0,
    };
    if let Some(sibling) = kubelet_version::joined_since(case, class, since) {
        return Opinion::ruled_out(sibling, format!("NodeClaim {} joined with the same userData", sibling.name()));
    }
    let (minor, name, place) = (kubelet.minor, class.name(), source_text::position(text, gate.span.start));
    let is_exact = gate.refusal != GateRefusal::Unknown && gate.argument.is_certain_of(gate.name);
    let error = match gate.refusal {
        GateRefusal::Locked(_, to) => {
            format!("cannot set feature gate {} to {}, feature is locked to {to}", gate.name, !to)
        }
        _ => format!("unrecognized feature gate: {}", gate.name),
    };
    Finding::new(
        if is_exact && kubelet.by_image { Confidence::Certain } else { Confidence::Likely },
        format!(
            "userData of {} {name}, line {}, sets the feature gate {}, {}: the kubelet of 1.{minor} exits over it and no Node appears.",
            class.kind,
            place.line,
            gate.name,
            gate.refusal
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::mask(gate.span.of(text).lines().next().unwrap_or_default()),
            error,
        ),
    )
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, kubelet.why))
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.userData").at(text, gate.span))
    .fix(match gate.refusal {
        GateRefusal::Unknown => format!("Correct the name of {0}, or take it out of the kubelet's feature gates; a gate of nodeadm, such as InstanceIdNodeName, stands in spec.featureGates of the NodeConfig.", gate.name),
        _ => format!("Take {} out of the feature gates in userData.", gate.name),
    })
    .step(
        Risk::Mutating,
        "Remove the gate; new machines are then right",
        Some(format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase())),
    )
    .into()
}
