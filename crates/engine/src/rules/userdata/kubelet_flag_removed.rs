//! userData passes the kubelet a flag that its version does not know any more: it exits, and no Node ever appears.

use crate::api::{Blame, Confidence, Evidence, Risk, Stage};
use crate::case::Case;
use crate::case::finding::{Finding, Opinion};
use crate::objects::input::Input;
use crate::rules::Rule;
use crate::rules::shared::kubelet_version;
use readers::source_text;

pub static RULE: Rule = Rule {
    cause: "KubeletFlagRemoved",
    summary: "userData passes a kubelet flag that this Kubernetes version has removed, over which the kubelet exits",
    stages: &[Stage::Join],
    reads: &[Input::Nodes, Input::NodeClaims, Input::NodeClasses],
    lint: false,
    versions: "Kubernetes 1.24, 1.26, 1.27, 1.30, 1.31, 1.34, 1.35 and later, by flag",
    page: include_str!("../../../pages/KubeletFlagRemoved.md"),
    check,
};

fn check(case: &Case) -> Opinion {
    let (Some(claim), Some((user_data, text)), Some(class)) = (case.claim, case.user_data(), case.class()) else {
        return Opinion::Silent;
    };
    let Some(kubelet) = kubelet_version::of(case) else { return Opinion::Silent };
    let Some((argument, since)) = user_data.removed_flags(kubelet.minor).next() else { return Opinion::Silent };
    if let Some(sibling) = kubelet_version::joined_since(case, class, since) {
        return Opinion::ruled_out(sibling, format!("NodeClaim {} joined with the same userData", sibling.name()));
    }
    let (flag, span, exact) = (argument.name(), argument.span, argument.is_certain_of(argument.name()));
    let place = source_text::position(text, span.start);
    let name = class.name();
    Finding::new(
        if exact && kubelet.by_image { Confidence::Certain } else { Confidence::Likely },
        format!(
            "userData of {} {name}, line {}, passes --{flag}, which Kubernetes 1.{since} removed: the kubelet exits over the unknown flag and no Node appears.",
            class.kind, place.line
        ),
        Evidence::new(
            format!("{}/{name}", class.kind),
            format!("spec.userData:{}:{}", place.line, place.column),
            source_text::mask(span.of(text).lines().next().unwrap_or_default()),
            format!("failed to parse kubelet flag: unknown flag: --{flag}"),
        ),
    )
    .with(Evidence::new(case.subject(), "status.imageID", &claim.status.image_id, kubelet.why))
    .blaming(Blame::object(&class.api_version, &class.kind, name).field("spec.userData").at(text, span))
    .fix(format!("Take --{flag} out of userData; containerd and the VPC CNI need none of these flags."))
    .step(Risk::Mutating, "Remove the flag; new machines are then right", Some(format!("kubectl edit {} {name}", class.kind.to_ascii_lowercase())))
    .into()
}
