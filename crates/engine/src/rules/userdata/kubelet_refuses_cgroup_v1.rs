//! The machine boots with cgroup v1, on which kubelets do not run since 1.35.

use crate::explain::instance_questions::ask_the_instance;
use crate::facts::cgroup_v1::{self, ASKS_FOR_V1, SINCE};
use crate::facts::{kubelet_skew, kubelet_version};
use crate::objects::{Ami, NodeClass};
use crate::rules::prelude::*;
use readers::source_text;
use readers::userdata::{Family, image_name};

rule! {
    cause: KubeletRefusesCgroupV1,
    summary: "The machine boots with cgroup v1, on which the kubelet does not run since Kubernetes 1.35",
    stages: [Join],
    reads: [Nodes, NodeClaims, NodeClasses, Deployments, AwsObservations],
    lint: true,
    versions: "Kubernetes 1.35 and later",
}

fn check(case: &Case) -> Option<Opinion> {
    let (_, class) = (case.claim?, case.class()?);
    // bottlerocket-core-kit#792 lets its kubelets run on cgroup v1.
    if !matches!(class.family(), Some(Family::Al2 | Family::Al2023 | Family::Custom)) {
        return None;
    }
    let kubelet = kubelet_version::expected(case).filter(|kubelet| kubelet.minor >= SINCE)?;
    if case.user_data().is_some_and(|(data, _)| cgroup_v1::is_allowed(data)) {
        return None;
    }
    let by_text = case.user_data().and_then(|(_, text)| Some((cgroup_v1::asked_for(text)?, text)));
    let image = kubelet_skew::image(case).filter(|ami| is_al2(ami, class));
    if by_text.is_none() && image.is_none() {
        return None;
    }
    if let Some(sibling) = kubelet_version::joined_since(case, class, SINCE) {
        return Some(Opinion::ruled_out(
            sibling,
            format!("NodeClaim {} joined with the same node class", sibling.name()),
        ));
    }
    let (kind, name) = (class.kind.to_ascii_lowercase(), class.name());
    let object = format!("{}/{name}", class.kind);
    let exits = "on which the kubelet exits since Kubernetes 1.35 (failCgroupV1), so the machine never joins";
    let blame = Blame::class(class);
    let finding = match (by_text, image) {
        (Some((span, text)), _) => {
            let place = source_text::position(text, span.start);
            Finding::new(
                Confidence::Likely,
                format!(
                    "userData of {} {name}, line {}, has the machine boot with cgroup v1, {exits}.",
                    class.kind, place.line
                ),
                Evidence::new(
                    object,
                    format!("spec.userData:{}:{}", place.line, place.column),
                    ASKS_FOR_V1,
                    "with this on the kernel's command line systemd takes cgroup v1 from the next boot on",
                ),
            )
            .blaming(blame.field("spec.userData").at(text, span))
            .fix(
                "Take it out of userData. If a program still needs cgroup v1, set failCgroupV1: false in the kubelet's \
                 configuration until then.",
            )
            .change("Correct userData. New nodes will be correct", format!("kubectl edit {kind} {name}"))
        }
        (None, image) => {
            let image = image.map_or("", |ami| ami.name.as_str());
            Finding::new(
                Confidence::Likely,
                format!(
                    "The image {image} of {} {name} is Amazon Linux 2, which has cgroup v1 only, {exits}.",
                    class.kind
                ),
                Evidence::new(object, "status.amis", image, "its systemd 219 knows no cgroup v2"),
            )
            .blaming(blame.field("spec.amiSelectorTerms"))
            .fix(
                "Move to Amazon Linux 2023 or Bottlerocket. Until then set failCgroupV1: false in the kubelet's \
                 configuration of the image.",
            )
            .change("Select an image with cgroup v2", format!("kubectl edit {kind} {name}"))
        }
    };
    let version = Evidence::new(case.subject(), "status.imageID", format!("1.{}", kubelet.minor), kubelet.why);
    ask_the_instance(case, finding.with(version)).into()
}

/// Whether the image is Amazon Linux 2, as far as its name says, or the class that has it.
fn is_al2(ami: &Ami, class: &NodeClass) -> bool {
    let named = image_name::family(&ami.name).or_else(|| image_name::hint(&ami.name));
    named.map_or(class.family() == Some(Family::Al2), |family| family == Family::Al2)
}
